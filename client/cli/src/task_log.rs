//! The output of a task, followed to its end.

use std::io::Write;
use std::time::Duration;

use model::document::Allocation;
use sdk::{Client, Frames, Query};

use crate::layout;

/// How often the task's state is polled, and how long its log must be silent after the task's end.
const POLL: Duration = Duration::from_secs(1);

/// Prints the log until the task has ended and its output is complete: a followed log has no end of its own.
///
/// # Errors
/// When the log cannot be read further.
pub(crate) async fn follow(
    client: &Client,
    id: &str,
    task: &str,
    mut frames: Frames,
    mut print: impl FnMut(&[u8]),
) -> Result<(), sdk::Error> {
    let mut end = std::pin::pin!(until_dead(client, id, task));
    let mut ended = false;
    loop {
        tokio::select! {
            frame = frames.next() => match frame? {
                Some(frame) => print(&frame.data.0),
                None => return Ok(()),
            },
            () = &mut end, if !ended => ended = true,
            () = tokio::time::sleep(POLL), if ended => return Ok(()),
        }
    }
}

/// Prints a task's standard error on ours.
pub(crate) fn pass_on(bytes: &[u8]) {
    // A failure is ignored: it could not be reported anywhere.
    let _ = std::io::stderr().lock().write_all(bytes);
}

/// Returns once the task is dead. While no server answers, it may be alive.
async fn until_dead(client: &Client, id: &str, task: &str) {
    loop {
        match client.allocation(id, Query::new()).await {
            Ok(alloc) if has_ended(&alloc.value, task) => return,
            Err(error) if error.status() == Some(404) => return,
            _ => tokio::time::sleep(POLL).await,
        }
    }
}

fn has_ended(alloc: &Allocation, task: &str) -> bool {
    let dead = alloc.task_states.get(task).is_some_and(|state| state.state == "dead");
    dead || layout::alloc::is_over(&alloc.client_status)
}

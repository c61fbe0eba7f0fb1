//! The output of a container, as the engine keeps it: with the time of each line.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::query_parameters::LogsOptions;
use futures_util::stream::StreamExt;
use tokio::time::sleep;

use super::super::containers::logs::Output;
use super::engine::{self, Engine};
use crate::driver::Logs;

/// Before an engine that has gone is asked again.
const RETRY_EVERY: Duration = Duration::from_millis(500);

/// The output of one container.
#[derive(Debug)]
pub struct Follower {
    pub engine: Arc<Engine>,
    pub container: String,
    pub logs: Logs,
    /// Where it is noted how far the output was written.
    pub note: PathBuf,
}

impl Follower {
    /// Returns when the container has ended and all its output is written, or when the engine does not give it.
    pub async fn run(self) {
        let mut output = match Output::open(&self.logs, &self.note) {
            Ok(output) => output,
            Err(error) => {
                tracing::warn!(container = self.container, %error, "the output of a task is not written");
                return;
            }
        };
        loop {
            let finished = self.once(&mut output, true).await;
            if finished {
                // An engine may stop to follow a moment before the last line.
                self.once(&mut output, false).await;
            }
            output.write_note();
            if finished {
                return;
            }
            sleep(RETRY_EVERY).await;
        }
    }

    /// Takes what the engine has, until it has no more; true when it will not have any more either.
    async fn once(&self, to: &mut Output, follow: bool) -> bool {
        let Ok(client) = self.engine.client().await else { return false };
        let options = LogsOptions {
            follow,
            stdout: true,
            stderr: true,
            timestamps: true,
            since: to.since(),
            ..LogsOptions::default()
        };
        to.begin_again();
        let mut output = client.logs(&self.container, Some(options));
        loop {
            match output.next().await {
                Some(Ok(LogOutput::StdOut { message } | LogOutput::Console { message })) => {
                    to.stdout.take(&message)
                }
                Some(Ok(LogOutput::StdErr { message })) => to.stderr.take(&message),
                Some(Ok(LogOutput::StdIn { .. })) => {}
                Some(Err(error)) => {
                    let finished = engine::is_missing(&error) || is_unreadable(&error);
                    if is_unreadable(&error) {
                        tracing::info!(
                            container = self.container,
                            "the engine gives no output of this container"
                        );
                    }
                    return finished;
                }
                None => break,
            }
            to.note_now_and_then();
        }
        match self.engine.inspect(&self.container).await {
            Ok(found) => found.state.and_then(|state| state.running) != Some(true),
            Err(error) => engine::is_missing(&error),
        }
    }
}

/// The logging driver of the container keeps nothing that can be read.
fn is_unreadable(error: &bollard::errors::Error) -> bool {
    matches!(engine::status(error), Some(400 | 500 | 501))
        && engine::text(error).contains("does not support reading")
}

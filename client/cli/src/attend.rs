//! Stays with a job until it has ended: what its tasks print is printed, and the exit code is theirs.

use std::collections::HashSet;
use std::time::Duration;

use base::Index;
use model::document::{AllocationListStub, Job, TaskState};
use sdk::{Client, LogRequest, LogSource, Query};
use tokio::task::JoinSet;

use crate::call::{Doing, Outcome};
use crate::flags::Flag;
use crate::output::{write_err, write_out};
use crate::{layout, task_log};

pub(crate) const WAIT: Flag<bool> = Flag::switch(
    "wait",
    "Stay until the job has ended: print what its tasks print, and exit with a task's exit code.",
);

/// Tasks whose output is followed; what more of them print is not shown.
const TASKS_MAX: usize = 64;

/// A line that is longer is printed in parts, where lines begin with the name of their task.
const LINE_MAX: usize = 64 << 10;

/// How long one read of allocations waits for a change of them.
const BLOCK: base::Duration = base::Duration::from_secs(2);

/// Between two reads of a server whose answers have no index.
const POLL: Duration = Duration::from_secs(1);

/// The exit code when an allocation failed, and no task of it says with what.
const FAILED: u8 = 1;

/// Prints what the job's tasks print, standard error apart, until the job has ended. The exit code is 0 when its allocations are
/// complete, else the largest one of a task that failed, or 1. Allocations count that were made at `since` or later, or run still.
///
/// # Errors
/// When a request fails, or the job is gone.
pub(crate) async fn until_ended(client: &Client, namespace: &str, id: &str, since: u64) -> Outcome {
    let query = || Query::new().namespace(namespace);
    let mut after = Index::ZERO;
    let mut output = Output::new(client, since);
    loop {
        // First the job: what its allocations are once it has ended is the last that is known of them.
        let job = client.job(id, query()).await.doing("querying job")?.value;
        let ended = job.status.as_deref() == Some("dead");
        let wanted = if ended { query() } else { query().newer_than(after, BLOCK) };
        let answer = client.job_allocations(id, wanted).await.doing("querying allocations")?;
        output.follow_all(&job, &answer.value);
        if ended {
            let counted = answer.value.iter().filter(|alloc| output.attended.contains(&alloc.id));
            let code = exit_code(counted);
            output.complete().await;
            return Ok(code);
        }
        if answer.index == Index::ZERO {
            tokio::time::sleep(POLL).await;
        }
        after = answer.index;
    }
}

/// What is being printed.
struct Output {
    client: Client,
    since: u64,
    /// Allocations that count.
    attended: HashSet<String>,
    followed: HashSet<(String, String)>,
    printing: JoinSet<Result<(), sdk::Error>>,
}

impl Output {
    fn new(client: &Client, since: u64) -> Output {
        let (attended, followed) = (HashSet::new(), HashSet::new());
        Output { client: client.clone(), since, attended, followed, printing: JoinSet::new() }
    }

    /// Follows the tasks that have begun and are not followed yet.
    fn follow_all(&mut self, job: &Job, allocs: &[AllocationListStub]) {
        let is_one = is_of_one_task(job);
        for alloc in allocs {
            let is_over = layout::alloc::is_over(&alloc.client_status);
            if alloc.create_index < self.since && is_over && !self.attended.contains(&alloc.id) {
                // Of a run before.
                continue;
            }
            self.attended.insert(alloc.id.clone());
            for task in alloc.task_states.iter().filter(|(_, state)| has_begun(state)).map(|(task, _)| task) {
                if self.followed.contains(&(alloc.id.clone(), task.clone())) {
                    continue;
                }
                if self.followed.len() == TASKS_MAX {
                    write_err(format!("The output of more than {TASKS_MAX} tasks is not shown\n"));
                }
                self.followed.insert((alloc.id.clone(), task.clone()));
                if self.followed.len() <= TASKS_MAX {
                    let name = (!is_one).then(|| format!("{}/{task}", alloc.name));
                    self.follow(&alloc.id, task, LogSource::Stdout, name.clone(), |bytes| write_out(bytes));
                    self.follow(&alloc.id, task, LogSource::Stderr, name, task_log::pass_on);
                }
            }
        }
    }

    fn follow(
        &mut self,
        alloc: &str,
        task: &str,
        source: LogSource,
        name: Option<String>,
        write: impl Fn(&[u8]) + Send + Sync + 'static,
    ) {
        let (client, alloc, task) = (self.client.clone(), alloc.to_string(), task.to_string());
        self.printing.spawn(async move {
            let request = LogRequest { task: task.clone(), source, follow: true, offset: 0, from_end: false };
            let frames = client.logs(&alloc, &request).await?;
            let Some(name) = name else {
                return task_log::follow(&client, &alloc, &task, frames, write).await;
            };
            let mut lines = NamedLines::new(&name);
            let followed =
                task_log::follow(&client, &alloc, &task, frames, |bytes| lines.push(bytes, &write)).await;
            lines.end(&write);
            followed
        });
    }

    /// Returns when all is printed. Output that cannot be had any more, because its node is gone, is no failure of the job.
    async fn complete(mut self) {
        while let Some(printed) = self.printing.join_next().await {
            match printed {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => write_err(format!("The output of a task is not complete: {failure}\n")),
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            }
        }
    }
}

/// Whether there can be no doubt whose output it is.
fn is_of_one_task(job: &Job) -> bool {
    let tasks = |group: &model::document::TaskGroup| group.count.unwrap_or(1) * group.tasks.len() as i64;
    let per_node = matches!(job.kind.as_deref(), Some("system" | "sysbatch"));
    !per_node && job.task_groups.iter().map(tasks).sum::<i64>() == 1
}

fn has_begun(state: &TaskState) -> bool {
    state.state != "pending"
}

/// Those that were replaced do not count.
fn exit_code<'a>(allocs: impl IntoIterator<Item = &'a AllocationListStub>) -> u8 {
    let last = allocs.into_iter().filter(|alloc| alloc.next_allocation.is_empty());
    let codes = last.map(|alloc| match alloc.client_status.as_str() {
        "failed" | "lost" => {
            let failed = alloc.task_states.values().filter(|state| state.failed);
            failed.filter_map(code_of).max().unwrap_or(FAILED)
        }
        _ => 0,
    });
    codes.max().unwrap_or(0)
}

/// What the task ended with last: its exit code, or 128 and the signal, as a shell says it.
fn code_of(state: &TaskState) -> Option<u8> {
    let ended = state.events.iter().rev().find(|event| event.kind == "Terminated")?;
    let code = if ended.exit_code == 0 && ended.signal > 0 { 128 + ended.signal } else { ended.exit_code };
    match u8::try_from(code) {
        Ok(0) => None,
        Ok(code) => Some(code),
        Err(_) => Some(FAILED),
    }
}

/// Lines of which each begins with whose it is.
struct NamedLines {
    name: String,
    line: Vec<u8>,
}

impl NamedLines {
    fn new(name: &str) -> NamedLines {
        NamedLines { name: name.to_string(), line: Vec::new() }
    }

    /// Writes the lines that are complete, in one piece each.
    fn push(&mut self, bytes: &[u8], write: impl Fn(&[u8])) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") || self.line.len() >= LINE_MAX {
                self.end(&write);
            }
        }
    }

    /// Writes what is left, as a line.
    fn end(&mut self, write: impl Fn(&[u8])) {
        if self.line.is_empty() {
            return;
        }
        let end: &[u8] = if self.line.ends_with(b"\n") { b"" } else { b"\n" };
        write(&[self.name.as_bytes(), b" | ", &self.line, end].concat());
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use model::document::{Task, TaskEvent, TaskGroup};

    use super::*;

    fn state(failed: bool, exit_code: i64, signal: i64) -> TaskState {
        let event = |kind: &str, exit_code, signal| TaskEvent {
            kind: kind.to_string(),
            exit_code,
            signal,
            ..TaskEvent::default()
        };
        let events =
            vec![event("Terminated", 9, 0), event("Terminated", exit_code, signal), event("Killed", 0, 0)];
        TaskState { state: "dead".into(), failed, events: events.into(), ..TaskState::default() }
    }

    fn alloc(status: &str, next: &str, tasks: &[TaskState]) -> AllocationListStub {
        let tasks = tasks.iter().enumerate().map(|(at, state)| (format!("task-{at}"), state.clone()));
        AllocationListStub {
            client_status: status.to_string(),
            next_allocation: next.to_string(),
            task_states: tasks.collect(),
            ..AllocationListStub::default()
        }
    }

    #[test]
    fn the_exit_code_is_the_largest_of_those_that_failed_last() {
        let complete = alloc("complete", "", &[state(false, 0, 0)]);
        assert_eq!(exit_code(&[]), 0);
        assert_eq!(exit_code(std::slice::from_ref(&complete)), 0);
        let failed = alloc("failed", "", &[state(false, 7, 0), state(true, 3, 0), state(true, 2, 0)]);
        assert_eq!(exit_code(&[complete.clone(), failed]), 3);
        assert_eq!(exit_code(&[alloc("failed", "", &[state(true, 0, 9)])]), 137, "as a shell says it");
        assert_eq!(exit_code(&[alloc("failed", "", &[state(true, 300, 0)])]), 1, "no code of a process");
        assert_eq!(
            exit_code(&[alloc("failed", "", &[TaskState { failed: true, ..TaskState::default() }])]),
            1
        );
        assert_eq!(exit_code(&[alloc("lost", "", &[])]), 1);
        assert_eq!(
            exit_code(&[alloc("failed", "another", &[state(true, 3, 0)]), complete]),
            0,
            "it was replaced"
        );
    }

    #[test]
    fn lines_of_several_tasks_are_told_apart_and_never_mixed() {
        let written = RefCell::new(String::new());
        let write = |bytes: &[u8]| written.borrow_mut().push_str(&String::from_utf8_lossy(bytes));
        let (mut one, mut two) = (NamedLines::new("a"), NamedLines::new("b"));
        one.push(b"first\nsec", write);
        two.push(b"other\n", write);
        one.push(b"ond\n\n", write);
        two.push(b"no end", write);
        [&mut one, &mut two].into_iter().for_each(|lines| lines.end(write));
        assert_eq!(*written.borrow(), "a | first\nb | other\na | second\na | \nb | no end\n");
        written.borrow_mut().clear();
        one.push(&vec![b'x'; LINE_MAX + 1], write);
        assert_eq!(written.borrow().len(), LINE_MAX + 1 + "a | \n".len(), "it is not held without bound");
    }

    #[test]
    fn one_task_needs_no_name() {
        let job = |kind: &str, count, tasks: usize| {
            let tasks = vec![Task::default(); tasks];
            let group = TaskGroup { count: Some(count), tasks: tasks.into(), ..TaskGroup::default() };
            Job { kind: Some(kind.into()), task_groups: vec![group].into(), ..Job::default() }
        };
        assert!(is_of_one_task(&job("batch", 1, 1)));
        assert!(!is_of_one_task(&job("batch", 2, 1)));
        assert!(!is_of_one_task(&job("batch", 1, 2)));
        assert!(!is_of_one_task(&job("sysbatch", 1, 1)));
    }
}

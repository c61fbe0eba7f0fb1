//! `-watch`: a command again and again, printed whenever what it prints has changed.

use std::io::{self, IsTerminal};
use std::time::Duration;

use crate::call::{Call, Doing, Failure, JSON, Outcome, now};
use crate::changes::{self, POLL};
use crate::flags::Flag;
use crate::output::{OutputStyle, Paint, hold, write_err, write_out};

pub(crate) const WATCH: Flag<bool> = Flag::switch(
    "watch",
    "Print it again whenever it has changed, until ctrl-c; with -json one line each time.",
);

/// Between two attempts to reach the agent: the first, and the longest.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Flags that ask for one moment, for something that ends by itself, or for a browser.
const EXCLUDED: [(&str, &str); 5] = [
    ("as-of", "what was does not change"),
    ("fork", "nothing changes on a fork by itself"),
    ("monitor", "it watches until the end, which is something else"),
    ("wait", "it belongs to -monitor"),
    ("ui", "a page would be opened again and again"),
];

/// What a command waits for before it is run again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waits {
    /// A change of nodes, jobs, allocations or evaluations.
    ForChanges,
    /// Some seconds: what it prints is not in the log.
    Briefly,
}

/// Runs a command once, or with `-watch` until ctrl-c; then the exit code is 0.
///
/// # Errors
/// As the command. With `-watch` the agent may go away and come back once there was something to print.
pub(crate) async fn run(call: Call, waits: Waits, command: impl AsyncFn(&Call) -> Outcome) -> Outcome {
    if !call.args.switch(&WATCH) {
        return command(&call).await;
    }
    let given = |(name, _): &&(&str, &str)| call.args.given().any(|(given, _)| given == *name);
    if let Some((name, why)) = EXCLUDED.iter().find(given) {
        return Err(call.usage(&format!("-watch and -{name} exclude each other: {why}")));
    }
    tokio::select! {
        outcome = repeat(call, waits, command) => outcome,
        _ = tokio::signal::ctrl_c() => Ok(0),
    }
}

async fn repeat(mut call: Call, waits: Waits, command: impl AsyncFn(&Call) -> Outcome) -> Outcome {
    call.environment.hide_hints = true;
    let client = call.client()?;
    let began = now();
    let (mut shown, mut pause) = (None, RETRY_FIRST);
    loop {
        let round = async {
            let stamps = changes::stamps(&client).await.doing("watching the cluster")?;
            // Ages are those of the beginning, so that time alone changes nothing.
            call.frozen = Some(began);
            let found = printed(&call, &command).await?;
            if shown.as_ref() != Some(&found) {
                call.frozen = None;
                let text = if is_json(&call) { found.clone() } else { printed(&call, &command).await? };
                show(&call, &text, shown.is_some())?;
                shown = Some(found);
            }
            match waits {
                Waits::ForChanges => changes::changed(&client, stamps).await.doing("watching the cluster")?,
                Waits::Briefly => tokio::time::sleep(POLL).await,
            }
            Ok::<(), Failure>(())
        };
        match round.await {
            Ok(()) => pause = RETRY_FIRST,
            Err(Failure::Failed(error)) if shown.is_some() && is_transient(&error) => {
                write_err(format!("{error:#}: trying again in {} s", pause.as_secs()));
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(RETRY_MAX);
            }
            Err(failure) => return Err(failure),
        }
    }
}

fn is_transient(error: &anyhow::Error) -> bool {
    error.downcast_ref::<sdk::Error>().is_some_and(sdk::Error::is_transient)
}

/// What the command prints.
async fn printed(call: &Call, command: impl AsyncFn(&Call) -> Outcome) -> Result<Vec<u8>, Failure> {
    let held = hold();
    command(call).await?;
    Ok(held.take())
}

fn is_json(call: &Call) -> bool {
    call.args.switch(&JSON)
}

/// On a terminal in place of what was there; elsewhere after a line that separates it from what was.
fn show(call: &Call, text: &[u8], is_change: bool) -> Result<(), Failure> {
    if is_json(call) {
        write_out(in_one_line(text)?);
    } else if io::stdout().is_terminal() {
        write_out([CLEAR.as_bytes(), title(call, &call.style()).as_bytes(), text].concat());
    } else {
        let line = if is_change { SEPARATOR } else { "" };
        write_out([line.as_bytes(), text].concat());
    }
    Ok(())
}

/// The cursor in the corner, and nothing else.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J\u{1b}[3J";

const SEPARATOR: &str = "---\n";

fn title(call: &Call, style: &OutputStyle) -> String {
    let words = [call.command.name].into_iter().chain(call.args.words.iter().map(String::as_str));
    let words = words.collect::<Vec<_>>().join(" ");
    let text = format!("{words}  changed at {}, ctrl-c ends", style.time(style.now.0));
    format!("{}\n\n", style.paint(Paint::Bold, &text))
}

fn in_one_line(text: &[u8]) -> Result<String, Failure> {
    let value: serde_json::Value = serde_json::from_slice(text)
        .map_err(|error| anyhow::anyhow!("what is printed is no JSON: {error}"))?;
    Ok(format!("{value}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_one_line() {
        let printed = crate::output::json(&serde_json::json!({"A": [1, 2], "B": "x\ny"}));
        assert_eq!(in_one_line(printed.as_bytes()).unwrap(), "{\"A\":[1,2],\"B\":\"x\\ny\"}\n");
        assert!(in_one_line(b"no").is_err());
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let unreachable = sdk::Error::Unreachable { address: "x".into(), reason: "refused".into() };
        let failed = |error: sdk::Error| match Err::<(), _>(error).doing("querying job") {
            Err(Failure::Failed(error)) => error,
            other => panic!("{other:?}"),
        };
        assert!(is_transient(&failed(unreachable)));
        let gone = failed(sdk::Error::Status { code: 404, text: "job not found".into() });
        assert!(!is_transient(&gone));
        assert_eq!(format!("{gone:#}"), "Error querying job: Unexpected response code: 404 (job not found)");
    }
}

use std::time::Instant;

use api::{DecisionAgain, DecisionsAgain, HistoryVerified};
use base::Duration;
use serde_json::json;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, JSON, Outcome, Run};
use crate::flags::Flag;
use crate::layout;
use crate::output::{bytes, json as printed, write_err, write_out};

const VERIFY: Flag<bool> =
    Flag::switch("verify", "Fold the whole log again and compare every state with what it says.");

const DECISIONS: Flag<bool> =
    Flag::switch("decisions", "Schedule every recorded evaluation again, and list what would differ.");
const SINCE: Flag<String> = Flag::value(
    "since",
    "MOMENT",
    "Only decisions since then: a time like 168h, last-week, an index, or a time like 2026-01-02T15:04:05Z.",
);
const ALGORITHM: Flag<String> =
    Flag::value("algorithm", "NAME", "Schedule by binpack or spread, whatever was configured.");

pub(super) static COMMAND: Command = Command {
    name: "replay",
    aliases: &[],
    arguments: "",
    summary: "Fold the log of a server again, or make its decisions again, and compare what comes out.",
    details: "With -verify: each batch carries the digest of the state that it was decided on; the state after the last one is compared with\n\
              the one that the server has. It begins with the oldest state that can be had, and takes a part of the log at a\n\
              time, so the server goes on working.\n\
              \nWith -decisions the server schedules every evaluation of its log again, on the state and with the seed that it was\n\
              scheduled with, and compares the plan with the log: after an update of the program, it says what the new scheduler\n\
              would have done differently. The exit code is 0 if nothing differs and 1 if something does, or on errors.",
    flags: &[&[&VERIFY, &DECISIONS, &SINCE, &ALGORITHM, &JSON], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    match (call.args.switch(&VERIFY), call.args.switch(&DECISIONS)) {
        (true, false) if call.args.value(&SINCE).or(call.args.value(&ALGORITHM)).is_none() => {
            verify(call).await
        }
        (true, false) => Err(call.usage("-since and -algorithm are for -decisions")),
        (false, true) => decisions(call).await,
        _ => Err(call.usage("This command needs either -verify or -decisions")),
    }
}

async fn verify(call: Call) -> Outcome {
    let client = call.client()?;
    let began = Instant::now();
    let first = client.verify_history(None).await.doing("verifying the log")?;
    let from = first.from;
    let (mut part, mut whole) = (first.clone(), first);
    while part.to < part.newest {
        write_err(format!("{} of {}", part.to, part.newest));
        part = client.verify_history(Some(part.to)).await.doing("verifying the log")?;
        whole = HistoryVerified {
            batches: whole.batches + part.batches,
            events: whole.events + part.events,
            bytes: whole.bytes + part.bytes,
            from,
            ..part.clone()
        };
    }
    let seconds = began.elapsed().as_secs_f64();
    if call.args.switch(&JSON) {
        write_out(printed(&json!({"Verified": whole, "Seconds": seconds})));
        return Ok(0);
    }
    let rate = whole.events as f64 / seconds.max(0.001);
    let HistoryVerified { to, batches, events, .. } = whole;
    write_out(format!(
        "The log leads from {from} to {to} as it did: {batches} batches, {events} events, {}; {rate:.0} events a second\n",
        bytes(whole.bytes)
    ));
    for (table, digest) in &whole.digests {
        write_out(format!("{table:<12} {digest}\n"));
    }
    Ok(0)
}

/// Decisions that are printed as JSON, in one document; the counts are of all.
const LISTED_MAX: usize = 10_000;

/// The exit code when something differs.
const DIFFERS: u8 = 1;

async fn decisions(call: Call) -> Outcome {
    let client = call.client()?;
    let (style, as_json, began) = (call.style(), call.args.switch(&JSON), Instant::now());
    let since = moment(call.args.value(&SINCE).unwrap_or_default());
    let algorithm = call.args.value(&ALGORITHM).unwrap_or_default();
    let doing = "making decisions again";
    let mut part = client.decisions_again(&since, algorithm).await.doing(doing)?;
    // What is decided meanwhile is left to the next run.
    let (from, end) = (part.from, part.newest);
    let mut whole = DecisionsAgain { from, newest: end, ..DecisionsAgain::default() };
    loop {
        whole.to = part.to;
        whole.decisions += part.decisions;
        whole.same += part.same;
        whole.differing += part.differing;
        whole.not_made += part.not_made;
        whole.cut_short |= part.cut_short;
        if as_json {
            keep(&mut whole, std::mem::take(&mut part.differences).0);
        } else {
            part.differences.iter().for_each(|one| write_out(layout::decisions::one(&style, one)));
        }
        if part.to >= end {
            break;
        }
        write_err(format!("{} of {end}", part.to));
        let before = part.to;
        part = client.decisions_again(&before.to_string(), algorithm).await.doing(doing)?;
        if part.to == before {
            return Err(anyhow::anyhow!("The log of the server ends at {before}, before index {end}").into());
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    write_out(if as_json {
        printed(&json!({"Decisions": whole, "Seconds": seconds}))
    } else {
        layout::decisions::summary(&whole, seconds)
    });
    Ok(if whole.differing == 0 { 0 } else { DIFFERS })
}

fn keep(whole: &mut DecisionsAgain, mut differences: Vec<DecisionAgain>) {
    let room = LISTED_MAX - whole.differences.len();
    whole.cut_short |= differences.len() > room;
    differences.truncate(room);
    whole.differences.extend(differences);
}

/// A time without a sign is one before now.
fn moment(text: &str) -> String {
    match text {
        "last-week" => "-168h".to_string(),
        text if !text.starts_with('-')
            && text.parse::<Duration>().is_ok()
            && text.parse::<u64>().is_err() =>
        {
            format!("-{text}")
        }
        text => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_sign_lies_before_now() {
        for (given, meant) in [
            ("", ""),
            ("168h", "-168h"),
            ("last-week", "-168h"),
            ("-2h", "-2h"),
            ("4711", "4711"),
            ("0", "0"),
            ("2026-01-02T15:04:05Z", "2026-01-02T15:04:05Z"),
            ("soon", "soon"),
        ] {
            assert_eq!(moment(given), meant, "{given}");
        }
    }

    #[test]
    fn a_list_that_becomes_too_long_is_cut_and_says_so() {
        let mut whole = DecisionsAgain::default();
        keep(&mut whole, vec![DecisionAgain::default(); LISTED_MAX]);
        assert!(!whole.cut_short);
        keep(&mut whole, vec![DecisionAgain::default()]);
        assert!(whole.cut_short && whole.differences.len() == LISTED_MAX);
    }
}

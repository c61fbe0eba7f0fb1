use api::{HistoryLine, ObjectHistory};
use base::{Duration, Index, Time};
use model::document::Timestamp;
use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, JSON, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::layout;
use crate::output::{json, write_err, write_out};
use crate::past::gaps::write_gaps;
use crate::past::object::Kind;
use crate::past::{Moment, Object};

const SINCE: Flag<String> =
    Flag::value("since", "MOMENT", "The first fact: a span like 1h, a time, or an index. Default: 1h.");
const UNTIL: Flag<String> = Flag::value("until", "MOMENT", "The last fact. Default: now.");
const JOB: Flag<String> = Flag::value("job", "NAME", "Only facts about this job.");
const NODE: Flag<String> = Flag::value("node", "ID", "Only facts about this node.");
const EVAL: Flag<String> = Flag::value("eval", "ID", "Only facts about this evaluation.");
const DEPLOYMENT: Flag<String> = Flag::value("deployment", "ID", "Only facts about this deployment.");

pub(super) static COMMAND: Command = Command {
    name: "log",
    aliases: &[],
    arguments: "",
    summary: "Print what happened: every fact, who brought it about, and what it is about.",
    details: "Without an object it reads the whole log, which takes a management token where access control is on. With one\n\
              it reads what is about that object, as history does.\n\
              Example: log -since 1h -job web",
    flags: &[&[&SINCE, &UNTIL, &JOB, &NODE, &EVAL, &DEPLOYMENT, &JSON, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    let kinds =
        [(&JOB, Kind::Job), (&NODE, Kind::Node), (&EVAL, Kind::Eval), (&DEPLOYMENT, Kind::Deployment)];
    let given: Vec<Object> = kinds
        .iter()
        .filter_map(|(flag, kind)| call.args.value(flag).map(|name| Object::new(*kind, name)))
        .collect();
    let until = Moment::find(&call, call.args.value(&UNTIL).unwrap_or("now")).await?;
    let since = back(call.args.value(&SINCE).unwrap_or("1h"));
    let lines = match given.as_slice() {
        [] => return whole(&call, &until, &since).await,
        [object] => of_object(&call, &until, object.clone()).await?,
        _ => {
            let names =
                [JOB.name(), NODE.name(), EVAL.name(), DEPLOYMENT.name()].map(|name| format!("-{name}"));
            return Err(call.usage(&format!("Only one of {} can be given", names.join(", "))));
        }
    };
    let first = after(&call, &since).await?;
    let is_wanted = |line: &HistoryLine| match first {
        First::Index(index) => line.index >= index.0,
        First::Time(time) => line.time.time() > time,
    };
    let shown: Vec<HistoryLine> = lines.lines.iter().filter(|line| is_wanted(line)).cloned().collect();
    print(&call, &shown);
    if matches!(first, First::Time(_)) || matches!(first, First::Index(index) if index.0 < lines.whole_from) {
        write_gaps(&lines);
    }
    Ok(0)
}

/// `1h` is a span before now, as `-1h` is.
fn back(given: &str) -> String {
    match given.parse::<Duration>() {
        Ok(_) if !given.starts_with('-') && given.parse::<u64>().is_err() => format!("-{given}"),
        _ => given.to_string(),
    }
}

/// The first fact that is wanted.
enum First {
    Index(Index),
    /// The first one after a time at which the log has no index any more.
    Time(Time),
}

/// The first fact that `since` means.
async fn after(call: &Call, since: &str) -> Result<First, Failure> {
    if let Ok(index) = since.parse() {
        return Ok(First::Index(Index(index)));
    }
    match call.client_at("", since)?.moment().await {
        Ok(index) => Ok(First::Index(index.next())),
        Err(error) if error.status() == Some(410) => {
            let span = since.strip_prefix('-').and_then(|span| span.parse::<Duration>().ok());
            let before = |span: Duration| Time(call.style().now.0.saturating_sub(span.0));
            let time = span.map(before).or_else(|| since.parse::<Timestamp>().ok().map(|time| time.time()));
            Ok(time.map_or(First::Index(Index::ZERO), First::Time))
        }
        Err(error) => Err(error).doing(&format!("finding the moment {since}")),
    }
}

async fn of_object(call: &Call, until: &Moment, object: Object) -> Result<ObjectHistory, Failure> {
    let object = object.resolved(&until.client, &call.style()).await?;
    object.history(&until.client).await
}

/// Page by page, printed as they come.
async fn whole(call: &Call, until: &Moment, since: &str) -> Outcome {
    let (mut query, mut all, mut gaps) = (Query::new().with("since", since), Vec::new(), None);
    loop {
        let page = until.client.log(query).await.doing("querying the log")?;
        let mut page_of = page.value;
        all.append(&mut page_of.lines.0);
        if page_of.cut_short && gaps.is_none() {
            gaps = Some(page_of);
        }
        match page.next_token {
            Some(token) => query = Query::new().with("next_token", token),
            None => break,
        }
    }
    print(call, &all);
    if let Some(page) = gaps {
        write_err("The log does not reach back that far: this is what there is");
        write_gaps(&page);
    }
    Ok(0)
}

fn print(call: &Call, lines: &[HistoryLine]) {
    if call.args.switch(&JSON) {
        write_out(json(&lines));
    } else if lines.is_empty() {
        write_err("Nothing happened in that time");
    } else {
        write_out(layout::history::log(&call.style(), lines));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_one_before_now_with_and_without_a_sign() {
        for (given, meant) in [
            ("1h", "-1h"),
            ("-15m", "-15m"),
            ("48213", "48213"),
            ("2026-01-02T15:04:05Z", "2026-01-02T15:04:05Z"),
        ] {
            assert_eq!(back(given), meant);
        }
    }
}

//! Monitors an evaluation until it is complete, and its deployment until it ends.

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::time::Duration;

use base::Index;
use model::document::{AllocationListStub, Deployment, Evaluation};
use sdk::{Client, Query};

use crate::call::{Doing, Failure, Outcome, now};
use crate::layout;
use crate::output::{OutputStyle, Paint, write_out};

/// How often the evaluation and its allocations are read.
const POLL: Duration = Duration::from_secs(1);

/// How long one read of a deployment waits for a change.
const DEPLOYMENT_WAIT: base::Duration = base::Duration::from_secs(2);

/// The progress indicator, and how fast it turns.
const FRAMES: [char; 4] = ['|', '/', '-', '\\'];
const SPIN: Duration = Duration::from_millis(120);

/// Most evaluations followed one after the other: a rolling update has one per step.
const CHAIN_MAX: usize = 1000;

/// The exit code when something could not be placed.
const NOT_PLACED: u8 = 2;

/// One line of output: a headline, or a detail below it.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Headline(String),
    Detail(String),
}

/// What was already printed about an evaluation.
#[derive(Default)]
struct Watch {
    eval: Option<Evaluation>,
    /// Client status of each allocation.
    allocs: HashMap<String, String>,
}

/// Monitors an evaluation, its follow-ups and its deployment, and prints what happens.
///
/// The exit code is 0 when everything was placed and the deployment, if any, succeeded; 2 when something could not
/// be placed; 1 when the deployment did not succeed.
///
/// # Errors
/// When a request fails.
pub(crate) async fn evaluation(client: &Client, style: &OutputStyle, id: &str) -> Outcome {
    let mut id = id.to_string();
    let mut placed = true;
    for _ in 0..CHAIN_MAX {
        print_lines(style, &[Line::Headline(format!("Monitoring evaluation \"{}\"", style.id(&id)))]);
        let eval = until_decided(client, style, &id).await?;
        placed &= eval.failed_tg_allocs.is_empty();
        let wait = eval.wait.0.to_std();
        if eval.next_eval.is_empty() || wait.is_zero() {
            return outcome(client, style, &eval, placed).await;
        }
        let next = style.id(&eval.next_eval);
        print_lines(
            style,
            &[Line::Headline(format!("Monitoring next evaluation \"{next}\" in {}", eval.wait.0))],
        );
        tokio::time::sleep(wait).await;
        id = eval.next_eval;
    }
    Err(anyhow::anyhow!("gave up after {CHAIN_MAX} evaluations").into())
}

async fn outcome(client: &Client, style: &OutputStyle, eval: &Evaluation, placed: bool) -> Outcome {
    if !eval.failed_tg_allocs.is_empty() {
        explain(client, style, &eval.id).await;
    }
    if !eval.deployment_id.is_empty() {
        let successful = deployment(client, style, &eval.deployment_id).await?;
        return Ok(match (successful, placed) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => NOT_PLACED,
        });
    }
    Ok(if placed { 0 } else { NOT_PLACED })
}

/// What would give the rest a place. A server that is not of this program does not know.
async fn explain(client: &Client, style: &OutputStyle, id: &str) {
    if let Ok(why) = client.explain_evaluation(id).await {
        let text = layout::placement::short(style, &why);
        write_out(
            text.lines().map(|line| format!("    {line}").trim_end().to_string() + "\n").collect::<String>(),
        );
    }
}

async fn until_decided(client: &Client, style: &OutputStyle, id: &str) -> Result<Evaluation, Failure> {
    let mut watch = Watch::default();
    loop {
        let eval = client.evaluation(id, Query::new()).await.doing("reading evaluation")?.value;
        let allocs = client.evaluation_allocations(id, Query::new()).await;
        let allocs = allocs.doing("reading allocations")?.value;
        print_lines(style, &watch.update(style, &eval, &allocs));
        if matches!(eval.status.as_str(), "complete" | "failed" | "canceled") {
            print_lines(style, &[finished(style, &eval)]);
            write_out(details_of_failure(style, &eval));
            return Ok(eval);
        }
        tokio::time::sleep(POLL).await;
    }
}

impl Watch {
    /// What is new since the last time.
    fn update(&mut self, style: &OutputStyle, eval: &Evaluation, allocs: &[AllocationListStub]) -> Vec<Line> {
        let mut lines = Vec::new();
        if self.eval.is_none() {
            lines.extend(first_sight(style, eval));
        }
        let deployment = |eval: &Evaluation| eval.deployment_id.clone();
        if !eval.deployment_id.is_empty() && self.eval.as_ref().map(deployment).unwrap_or_default().is_empty()
        {
            let id = style.id(&eval.deployment_id);
            lines.push(Line::Detail(format!("Evaluation within deployment: \"{id}\"")));
        }
        for alloc in allocs {
            lines.extend(self.allocation(style, eval, alloc));
        }
        let before = self.eval.as_ref().map_or("pending", |eval| eval.status.as_str());
        if before != eval.status && eval.status != "pending" {
            lines.push(Line::Detail(format!(
                "Evaluation status changed: \"{before}\" -> \"{}\"",
                eval.status
            )));
        }
        self.eval = Some(eval.clone());
        lines
    }

    fn allocation(
        &mut self,
        style: &OutputStyle,
        eval: &Evaluation,
        alloc: &AllocationListStub,
    ) -> Option<Line> {
        let status = alloc.client_status.clone();
        let id = style.id(&alloc.id);
        match self.allocs.insert(alloc.id.clone(), status.clone()) {
            None if alloc.desired_status != "run" => None,
            None => {
                let done = if alloc.create_index < eval.create_index { "modified" } else { "created" };
                let (node, group) = (style.id(&alloc.node_id), &alloc.task_group);
                Some(Line::Detail(format!("Allocation \"{id}\" {done}: node \"{node}\", group \"{group}\"")))
            }
            Some(before) if before == status => None,
            Some(before) => {
                let mut text = format!("Allocation \"{id}\" status changed: \"{before}\" -> \"{status}\"");
                if !alloc.client_description.is_empty() {
                    text.push_str(&format!(" ({})", alloc.client_description));
                }
                Some(Line::Detail(text))
            }
        }
    }
}

fn first_sight(style: &OutputStyle, eval: &Evaluation) -> Option<Line> {
    let what = match (eval.triggered_by.as_str(), eval.node_id.as_str()) {
        ("node-update", node) if !node.is_empty() => format!("node \"{}\"", style.id(node)),
        _ => format!("job \"{}\"", eval.job_id),
    };
    Some(Line::Detail(format!("Evaluation triggered by {what}")))
}

fn finished(style: &OutputStyle, eval: &Evaluation) -> Line {
    let id = style.id(&eval.id);
    let failed = if eval.failed_tg_allocs.is_empty() { "" } else { " but failed to place all allocations:" };
    Line::Headline(format!("Evaluation \"{id}\" finished with status \"{}\"{failed}", eval.status))
}

/// The reasons, below the line about the failed placement.
fn details_of_failure(style: &OutputStyle, eval: &Evaluation) -> String {
    if eval.failed_tg_allocs.is_empty() {
        return String::new();
    }
    let time = style.time(now().0);
    let mut text = String::new();
    for line in layout::eval::failed_groups(style, eval, "").lines() {
        let stamp = if line.starts_with(' ') { String::new() } else { format!("{time}: ") };
        text.push_str(&format!("    {stamp}{line}\n"));
    }
    if !eval.blocked_eval.is_empty() {
        let id = style.id(&eval.blocked_eval);
        text.push_str(&format!(
            "    {time}: Evaluation \"{id}\" waiting for additional capacity to place remainder\n"
        ));
    }
    text
}

/// Follows a deployment, and the one that rolls it back. True when it succeeded.
///
/// # Errors
/// When a request fails.
async fn deployment(client: &Client, style: &OutputStyle, id: &str) -> Result<bool, Failure> {
    let over = until_over(client, style, id).await?;
    if over.status == "failed" && over.task_groups.values().any(|group| group.auto_revert) {
        let query = Query::new().namespace(&over.namespace);
        let latest = client.job_deployment(&over.job_id, query).await.doing("reading deployment")?.value;
        if let Some(rollback) = latest.filter(|latest| latest.id != over.id) {
            until_over(client, style, &rollback.id).await?;
        }
    }
    Ok(over.status == "successful")
}

async fn until_over(client: &Client, style: &OutputStyle, id: &str) -> Result<Deployment, Failure> {
    print_lines(style, &[Line::Headline(format!("Monitoring deployment \"{}\"", style.id(id)))]);
    let (mut index, mut shown) = (Index::ZERO, String::new());
    loop {
        let query = Query::new().newer_than(index, DEPLOYMENT_WAIT).flag("stale", true);
        let text = format!("Deployment \"{}\" in progress...", style.id(id));
        let answer = spinning(&text, client.deployment(id, query)).await.doing("reading deployment")?;
        let view = layout::deployment::view(style, &answer.value, &[])
            + &layout::deployment::promotion(style, &answer.value);
        if view != shown {
            show(style, &view, &shown);
            shown = view;
        }
        if matches!(answer.value.status.as_str(), "successful" | "failed" | "cancelled" | "blocked") {
            return Ok(answer.value);
        }
        index = answer.index.max(Index(1));
    }
}

/// Shows a progress indicator on a terminal until the work is done, and then removes it.
async fn spinning<T>(text: &str, what: impl Future<Output = T>) -> T {
    if !io::stdout().is_terminal() {
        return what.await;
    }
    let mut what = std::pin::pin!(what);
    let mut ticks = tokio::time::interval(SPIN);
    let mut frames = FRAMES.iter().cycle();
    loop {
        tokio::select! {
            done = &mut what => {
                write_out("\r\x1b[K");
                return done;
            }
            _ = ticks.tick() => {
                let frame = frames.next().expect("a cycle has no end");
                write_out(format!("\r  {frame} {text}"));
            }
        }
    }
}

/// Prints a deployment: over the previous output on a terminal, below it elsewhere.
fn show(style: &OutputStyle, view: &str, shown: &str) {
    let block =
        |view: &str| view.lines().map(|line| format!("    {line}").trim_end().to_string() + "\n").collect();
    let body: String = block(view);
    let head = format!("\n    {}\n", style.time(now().0));
    let up = if shown.is_empty() || !io::stdout().is_terminal() {
        String::new()
    } else {
        format!("\x1b[{}A\x1b[J", shown.lines().count() + head.lines().count())
    };
    write_out(format!("{up}{head}{body}"));
}

/// Prints a headline of another long operation.
pub(crate) fn print_headline(style: &OutputStyle, text: &str) {
    print_lines(style, &[Line::Headline(text.to_string())]);
}

/// Prints a detail of it.
pub(crate) fn print_detail(style: &OutputStyle, text: &str) {
    print_lines(style, &[Line::Detail(text.to_string())]);
}

fn print_lines(style: &OutputStyle, lines: &[Line]) {
    let time = style.time(now().0);
    let text: String = lines
        .iter()
        .map(|line| match line {
            Line::Headline(text) => format!("{}\n", style.paint(Paint::Bold, &format!("==> {time}: {text}"))),
            Line::Detail(text) => format!("    {time}: {text}\n"),
        })
        .collect();
    write_out(text);
}

#[cfg(test)]
mod tests {
    use model::document::AllocationMetric;

    use super::*;

    fn eval(status: &str) -> Evaluation {
        Evaluation {
            id: "11111111-2222".into(),
            job_id: "web".into(),
            triggered_by: "job-register".into(),
            status: status.into(),
            create_index: 10,
            ..Evaluation::default()
        }
    }

    fn alloc(id: &str, status: &str, index: u64) -> AllocationListStub {
        AllocationListStub {
            id: id.into(),
            node_id: "0badcafe-1".into(),
            task_group: "api".into(),
            desired_status: "run".into(),
            client_status: status.into(),
            create_index: index,
            ..AllocationListStub::default()
        }
    }

    fn detail(text: &str) -> Line {
        Line::Detail(text.to_string())
    }

    #[test]
    fn each_change_is_printed_once() {
        let (style, mut watch) = (OutputStyle::for_tests(), Watch::default());
        assert_eq!(
            watch.update(&style, &eval("pending"), &[]),
            [detail("Evaluation triggered by job \"web\"")]
        );
        assert_eq!(watch.update(&style, &eval("pending"), &[]), []);
        let within = Evaluation { deployment_id: "dddddddd-1".into(), ..eval("complete") };
        let allocs = [alloc("aaaaaaaa", "pending", 11), alloc("bbbbbbbb", "running", 5)];
        assert_eq!(
            watch.update(&style, &within, &allocs),
            [
                detail("Evaluation within deployment: \"dddddddd\""),
                detail("Allocation \"aaaaaaaa\" created: node \"0badcafe\", group \"api\""),
                detail("Allocation \"bbbbbbbb\" modified: node \"0badcafe\", group \"api\""),
                detail("Evaluation status changed: \"pending\" -> \"complete\""),
            ]
        );
        let failed =
            AllocationListStub { client_description: "no luck".into(), ..alloc("aaaaaaaa", "failed", 11) };
        assert_eq!(
            watch.update(&style, &within, &[failed]),
            [detail("Allocation \"aaaaaaaa\" status changed: \"pending\" -> \"failed\" (no luck)")]
        );
    }

    #[test]
    fn a_failed_placement_is_in_the_last_line() {
        let style = OutputStyle::for_tests();
        let head = |text: &str| Line::Headline(text.to_string());
        assert_eq!(
            finished(&style, &eval("complete")),
            head("Evaluation \"11111111\" finished with status \"complete\"")
        );
        let failed = Evaluation {
            failed_tg_allocs: [("api".to_string(), AllocationMetric::default())].into_iter().collect(),
            ..eval("complete")
        };
        assert_eq!(
            finished(&style, &failed),
            head(
                "Evaluation \"11111111\" finished with status \"complete\" but failed to place all allocations:"
            )
        );
        let details = details_of_failure(&style, &failed);
        assert!(details.contains(": Task Group \"api\" (failed to place 1 allocation):\n"), "{details}");
        assert!(details.contains("\n      * No nodes were eligible for evaluation\n"), "{details}");
    }
}

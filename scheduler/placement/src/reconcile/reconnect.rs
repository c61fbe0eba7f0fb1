//! Reconnecting allocations, and the choice between each of them and its replacements.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use base::Time;
use model::document::{Reconnect, TaskState};
use model::{AllocId, ClientStatus, Desired};
use state::alloc::Alloc;

use super::PassContext;
use super::classify::Classes;
use super::deployment::GroupDeployment;
use super::group::{GroupPlan, Stop};
use crate::descriptions;
use crate::reschedule::successors;

/// Decides every reconnecting allocation. Those that stay join the untainted; what is stopped is removed from all sets.
pub fn resolve<'a>(
    cx: &PassContext<'a>,
    group_deployment: &GroupDeployment,
    classes: &mut Classes<'a>,
    plan: &mut GroupPlan<'a>,
) {
    let returning = std::mem::take(&mut classes.reconnecting);
    let (mut stopped, mut back) = (BTreeSet::new(), Vec::new());
    for original in returning.iter() {
        // It is itself a replacement, and its own original was preferred.
        if stopped.contains(&original.id) {
            continue;
        }
        let decided = plan.stops.len();
        match verdict(cx, group_deployment, classes, plan, &stopped, original) {
            Some(stop) => plan.stop(stop),
            None => {
                back.push(original);
                // Its node reported that it runs, so the reconnect has to be recorded.
                if original.client == ClientStatus::Running {
                    plan.reconnected.push(original);
                }
            }
        }
        for stop in &plan.stops[decided..] {
            stopped.insert(stop.alloc.id);
            let sets = [
                &mut classes.untainted,
                &mut classes.migrate,
                &mut classes.lost,
                &mut classes.disconnecting,
                &mut classes.expiring,
            ];
            sets.into_iter().for_each(|set| _ = set.remove(stop.alloc));
        }
    }
    // A replacement may have reconnected too, and been stopped afterwards.
    back.retain(|alloc| !stopped.contains(&alloc.id));
    classes.untainted.append(back.into_iter().collect());
    plan.reconnected.retain(|back| !stopped.contains(&back.id));
}

/// The stop of the original, unless it stays. Replacements that are not preferred are stopped here.
fn verdict<'a>(
    cx: &PassContext<'a>,
    group_deployment: &GroupDeployment,
    classes: &Classes<'a>,
    plan: &mut GroupPlan<'a>,
    stopped: &BTreeSet<AllocId>,
    original: &'a Alloc,
) -> Option<Stop<'a>> {
    let stands = |alloc: &&Alloc| !alloc.is_stopping() && !stopped.contains(&alloc.id);
    let mut substitutes = successors(cx.state, original).filter(stands).peekable();
    if original.client == ClientStatus::Failed {
        // Without a replacement the policy decides, as for any failure.
        substitutes.peek()?;
        let stop = Stop::new(original, descriptions::RESCHEDULED);
        return Some(Stop { client: Some(ClientStatus::Failed), ..stop });
    }
    let not_needed = Stop::new(original, descriptions::NOT_NEEDED);
    let outdated = cx.is_older(&original.version) && !is_paced(cx, group_deployment, original);
    if original.desired != Desired::Run || original.transition.is_asked_to_leave() || outdated {
        return Some(not_needed);
    }
    let mut loses = false;
    for substitute in substitutes {
        let choice = choice(cx, classes, original, substitute);
        if choice.keeps_original {
            plan.stop(Stop::new(substitute, descriptions::ORIGINAL_BACK));
        } else {
            loses = true;
        }
        plan.reconnects.push(choice);
    }
    loses.then_some(not_needed)
}

/// Its older version is replaced at the pace of an update, if at all: until a canary is promoted it is what serves.
/// Nomad stops whatever returns with an older version, all at once.
fn is_paced(cx: &PassContext, group_deployment: &GroupDeployment, alloc: &Alloc) -> bool {
    let same_job = alloc.version.job_created == cx.job.current().job_created;
    same_job && group_deployment.max_parallel().is_some()
}

/// A replacement that is terminal, or that this pass stops, must not be preferred: then neither would run (P1).
fn survives(classes: &Classes, substitute: &Alloc) -> bool {
    let dying = [&classes.lost, &classes.migrate, &classes.disconnecting, &classes.expiring];
    !substitute.client.is_terminal() && dying.iter().all(|set| !set.contains(substitute))
}

/// Which of the two stays, and why.
fn choice(cx: &PassContext, classes: &Classes, original: &Alloc, substitute: &Alloc) -> Reconnect {
    let group = cx.job.current().group(&original.group).and_then(|group| group.disconnect.as_ref());
    let strategy = group.and_then(|block| block.reconcile.as_deref()).filter(|text| !text.is_empty());
    let strategy = strategy.unwrap_or("best_score");
    let version = |alloc: &Alloc| (alloc.version.job_created, alloc.version.version);
    let (keeps_original, why) = if !survives(classes, substitute) {
        (true, "the replacement has ended or is being stopped")
    } else if version(substitute) > version(original) {
        (false, "the replacement runs a newer version of the job")
    } else {
        match strategy {
            "keep_original" => (true, "the strategy keeps the original"),
            "keep_replacement" => (false, "the strategy keeps the replacement"),
            "longest_running" if longest_running(original, substitute) => {
                (false, "the replacement has run for at least as long")
            }
            "longest_running" => (true, "the original has run for longer"),
            _ if best_score(original, substitute) => {
                (false, "the replacement was placed with a better score")
            }
            _ => (true, "the replacement has no better score, or does not run while the original does"),
        }
    };
    Reconnect {
        original: original.id.to_string(),
        replacement: substitute.id.to_string(),
        strategy: strategy.to_string(),
        original_score: placed_score(original),
        replacement_score: placed_score(substitute),
        keeps_original,
        why: why.to_string(),
    }
}

/// The score that it was placed with.
fn placed_score(alloc: &Alloc) -> Option<f64> {
    alloc.metrics.score_meta_data.first().map(|score| score.norm_score)
}

/// Prefers the replacement if its score was better when it was placed.
fn best_score(original: &Alloc, substitute: &Alloc) -> bool {
    let better = match (placed_score(original), placed_score(substitute)) {
        (None, Some(_)) => true,
        (Some(original), Some(substitute)) => substitute > original,
        (_, None) => false,
    };
    let running = |alloc: &Alloc| alloc.client == ClientStatus::Running;
    better && (running(substitute) || !running(original))
}

fn longest_running(original: &Alloc, substitute: &Alloc) -> bool {
    match (start(original), start(substitute)) {
        (Time::ZERO, Time::ZERO) => best_score(original, substitute),
        (Time::ZERO, _) => true,
        (_, Time::ZERO) => false,
        (original, substitute) => original.cmp(&substitute) != Ordering::Less,
    }
}

/// When its leader task last started; without a leader, when the first of its tasks did. Zero if none has.
fn start(alloc: &Alloc) -> Time {
    let states = &alloc.report.task_states;
    let tasks = alloc.version.group(&alloc.group).map(|group| &group.tasks);
    let leader = tasks.and_then(|tasks| tasks.iter().find(|task| task.leader));
    if let Some(leader) = leader {
        return states.get(&leader.name).map_or(Time::ZERO, last_start);
    }
    let starts = states.values().map(last_start).filter(|start| *start != Time::ZERO);
    starts.min().unwrap_or(Time::ZERO)
}

fn last_start(task: &TaskState) -> Time {
    if task.restarts > 0 { task.last_restart.time() } else { task.started_at.time() }
}

#[cfg(test)]
mod tests {
    use model::document::Task;

    use super::*;
    use crate::reconcile::test_alloc::{TestAlloc, lost_after};

    fn sample() -> TestAlloc {
        TestAlloc::new(lost_after(300, true))
    }

    /// D43-D50: the substitute wins if it scores higher and runs, or the original does not run.
    #[test]
    fn the_better_score_wins_if_it_runs() {
        use ClientStatus::{Pending, Running, Unknown};
        for (original, substitute, expected) in [
            ((Some(0.9), Running), (Some(0.5), Running), false),
            ((Some(0.5), Running), (Some(0.9), Running), true),
            ((Some(0.5), Running), (Some(0.9), Pending), false),
            ((Some(0.5), Unknown), (Some(0.9), Pending), true),
            ((Some(0.5), Running), (Some(0.5), Running), false),
            ((None, Running), (Some(0.1), Running), true),
            ((Some(0.1), Running), (None, Running), false),
            ((None, Running), (None, Running), false),
        ] {
            let alloc = |(score, client)| sample().client(client).scored(score).alloc;
            assert_eq!(
                best_score(&alloc(original), &alloc(substitute)),
                expected,
                "{original:?} {substitute:?}"
            );
        }
    }

    /// D51-D56, D59.
    #[test]
    fn who_runs_longer_wins_and_a_tie_goes_to_the_substitute() {
        let task = |started, restarted| sample().task("main", started, restarted).alloc;
        assert!(!longest_running(&task(1000, None), &task(1005, None)));
        assert!(longest_running(&task(1000, Some(1010)), &task(1005, None)));
        assert!(longest_running(&task(0, None), &task(1005, None)));
        assert!(!longest_running(&task(1000, None), &task(0, None)));
        assert!(!longest_running(&task(0, None), &task(0, None)));
        assert!(longest_running(&task(1000, None), &task(1000, None)));
        let two = sample().task("main", 1010, None).task("side", 1000, None).alloc;
        assert!(!longest_running(&two, &task(1005, None)));
    }

    /// D57, D58.
    #[test]
    fn a_leader_speaks_for_its_allocation() {
        let led = |leader: i64, side: i64| {
            let mut group = lost_after(300, true);
            group.tasks.push(Task { name: "main".into(), leader: true, ..Task::default() });
            group.tasks.push(Task { name: "side".into(), ..Task::default() });
            TestAlloc::new(group).task("main", leader, None).task("side", side, None).alloc
        };
        assert_eq!(start(&led(1010, 1000)), Time::from_secs(1010));
        assert_eq!(start(&led(0, 1000)), Time::ZERO);
    }
}

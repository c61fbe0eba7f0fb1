//! What makes more work for schedulers waits while they are behind.

use std::sync::Arc;

use base::{Duration, Index, Uuid};
use control::leader_client::NoPeers;
use control::{BrokerSettings, Control, LeaderAnswer, LeaderCall, Leadership, Settings, SubmitError};
use journal::MemoryJournal;
use model::command::{EvalEnd, Plan, RegisterJob, Settlement};
use model::document::{Job, TaskGroup};
use model::event::EvalOutcome;
use model::{Actor, Command, EvalId, JobKey, JobType, Request};
use state::State;

/// A server without schedulers of its own.
async fn server() -> Control {
    let starting = control::prepare(Settings {
        server: Uuid::from_random([9; 16]),
        garbage: Default::default(),
        scheduler: Default::default(),
        heartbeats: Default::default(),
        // Whatever waits at all has waited too long.
        broker: BrokerSettings { lag_max: Duration(1), ..BrokerSettings::default() },
        job_count_max: 50_000,
        first_index: Index::ZERO,
        notes: None,
        workers: 0,
        rpc_hold: Duration::from_secs(5),
    });
    let journal = Arc::new(MemoryJournal::with(Vec::new(), starting.inbox.clone()));
    let control = starting.start(journal, Arc::new(NoPeers), &tokio::runtime::Handle::current());
    control.leadership().wait_for(|now| *now == Leadership::Mine).await.unwrap();
    control
}

fn registered(id: &str) -> Command {
    let group = TaskGroup { name: Some("g".to_string()), count: Some(1), ..TaskGroup::default() };
    Command::RegisterJob(Box::new(RegisterJob::new(Job {
        namespace: Some("default".to_string()),
        id: Some(id.to_string()),
        kind: Some("service".to_string()),
        task_groups: vec![group].into(),
        ..Job::default()
    })))
}

async fn submit(control: &Control, command: Command) -> Result<EvalId, SubmitError> {
    let receipt = control.submit(Request::unnamed(Actor::ANONYMOUS, command)).await?;
    Ok(receipt.reply.evals.first().copied().unwrap_or_default())
}

async fn settle(control: &Control, eval: EvalId) {
    let end = EvalEnd::complete(EvalOutcome::default());
    let plan = Plan { snapshot: control.state().index, ..Plan::default() };
    submit(control, Command::SettleEval(Box::new(Settlement { eval, plan, end: Some(end) }))).await.unwrap();
}

/// What a worker of another server gets.
async fn dequeue(control: &Control) -> Vec<EvalId> {
    let call =
        LeaderCall::Dequeue { types: vec![JobType::Service], patience: Duration::from_secs(1), max: 8 };
    let LeaderAnswer::DequeuedAll(deliveries) = control.answer(call).await else { panic!("another answer") };
    deliveries.into_iter().map(|delivery| delivery.eval).collect()
}

fn knows(state: &State, job: &str) -> bool {
    state.jobs.find(&JobKey::new("default", job)).is_some()
}

#[tokio::test]
async fn jobs_wait_for_schedulers_that_are_behind_and_what_stops_them_does_not() {
    let control = server().await;
    let first = submit(&control, registered("first")).await.unwrap();
    let second = submit(&control, registered("second")).await.unwrap();
    let third = submit(&control, registered("third")).await.unwrap();
    // One is delivered, so somebody schedules.
    assert_eq!(dequeue(&control).await, [first, second]);
    // The state is published again, and the third still waits.
    let stop = Command::DeregisterJob {
        key: JobKey::new("default", "second"),
        purge: false,
        eval_priority: None,
        no_shutdown_delay: false,
    };
    submit(&control, stop.clone()).await.unwrap();

    // One that waits is rejected in the end, and nothing has come of it.
    assert_eq!(submit(&control, registered("rejected")).await, Err(SubmitError::Busy));
    assert!(!knows(&control.state(), "rejected"));

    // Another gets its turn as soon as nothing waits any more.
    let held = tokio::spawn({
        let control = control.clone();
        async move { submit(&control, registered("held")).await }
    });
    while control.commands_waiting() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(!knows(&control.state(), "held"));
    for eval in [first, second, third] {
        settle(&control, eval).await;
    }
    // That of the stop.
    let [last] = dequeue(&control).await[..] else { panic!("one waits") };
    settle(&control, last).await;
    assert!(held.await.unwrap().is_ok());
    assert!(knows(&control.state(), "held"));
}

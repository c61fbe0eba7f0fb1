//! Every order in which a node can vanish and come back, against every moment a scheduler can look.
//!
//! The rules P1 to P5 are checked after each step, and after calm everything must have converged.

use base::{Duration, Index, Time};
use model::command::{RegisterJob, Settlement};
use model::document::{Job, input};
use model::event::Event;
use model::{ClientStatus, Command, Desired, EvalStatus, NodeStatus, Rejection};
use rules::Decision;
use state::alloc::Alloc;
use test_world::{World, key, node_document, node_id};

/// What can happen, in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The leader receives nothing from node 1.
    Expiry,
    /// Node 1 says that it is ready.
    UpdateStatus,
    /// Node 1 says that everything it has runs.
    UpdateAlloc,
    /// Node 1 describes itself, a little differently each time.
    Register,
    /// A scheduler looks at the state as it is now.
    Look,
    /// The scheduler brings what it made of what it saw.
    Commit,
}

const STEPS: [Step; 6] =
    [Step::Expiry, Step::UpdateStatus, Step::UpdateAlloc, Step::Register, Step::Look, Step::Commit];

/// Rounds of 20 s after the faults. What has not converged by then does not.
const CALM_ROUNDS_MAX: usize = 16;

/// How the group wants its allocations treated while their node is cut off.
#[derive(Clone, Copy, Debug)]
enum Policy {
    /// Silence is loss.
    Plain,
    /// They may return, and meanwhile others take their place.
    Replaced,
    /// They may return, and nobody takes their place.
    Kept,
}

struct Run {
    world: World,
    seen: Option<Settlement>,
    registrations: u32,
    /// The batch in which node 1 last fell silent, and the last in which it reported.
    silent_since: Index,
    reported: Index,
}

#[test]
fn one_allocation_survives_every_order_of_five_steps_after_a_silence() {
    for policy in [Policy::Plain, Policy::Replaced, Policy::Kept] {
        every_order(1, policy, 5);
    }
}

#[test]
fn two_allocations_survive_every_order_of_four_steps_after_a_silence() {
    for policy in [Policy::Plain, Policy::Replaced, Policy::Kept] {
        every_order(2, policy, 4);
    }
}

fn every_order(count: u32, policy: Policy, length: usize) {
    let mut orders = 0;
    for number in 0..STEPS.len().pow(length as u32) {
        let digits = std::iter::successors(Some(number), |rest| Some(rest / STEPS.len()));
        let order: Vec<Step> = digits.take(length).map(|digit| STEPS[digit % STEPS.len()]).collect();
        if says_nothing_new(&order) {
            continue;
        }
        let told = std::panic::catch_unwind(|| {
            let mut run = Run::new(count, policy);
            run.perform(Step::Expiry);
            order.iter().for_each(|step| run.perform(*step));
            run.calm(count);
        });
        assert!(told.is_ok(), "{policy:?} with {count}: {order:?}");
        orders += 1;
    }
    println!("{orders} orders of {count} allocations, {policy:?}");
}

/// A scheduler that commits without having looked, or looks twice, makes an order equal to a shorter one.
fn says_nothing_new(order: &[Step]) -> bool {
    let mut looked = false;
    order.iter().any(|step| match step {
        Step::Look => std::mem::replace(&mut looked, true) && order.windows(2).any(|w| w == [Step::Look; 2]),
        Step::Commit => !std::mem::replace(&mut looked, false),
        Step::Expiry | Step::UpdateStatus | Step::UpdateAlloc | Step::Register => false,
    })
}

impl Run {
    /// Two ready nodes; the job runs on node 1.
    fn new(count: u32, policy: Policy) -> Run {
        let mut world = World::new();
        world.register_node(1, "r1").unwrap();
        let mut run =
            Run { world, seen: None, registrations: 0, silent_since: Index::ZERO, reported: Index::ZERO };
        run.status(1).unwrap();
        let request = RegisterJob::new(job(count, policy));
        run.world.submit(Command::RegisterJob(Box::new(request))).unwrap();
        run.pass();
        run.report().unwrap();
        run.world.register_node(2, "r1").unwrap();
        run.status(2).unwrap();
        assert_eq!(
            run.wanted().iter().filter(|alloc| alloc.client == ClientStatus::Running).count() as u32,
            count
        );
        run
    }

    fn perform(&mut self, step: Step) {
        // Node 2 is not what this is about: it always reports its status.
        self.report_node(2).ok();
        let before = self.world.state.clone();
        let outcome = match step {
            Step::Expiry => self.world.submit(Command::MissHeartbeat { node: node_id(1) }),
            Step::UpdateStatus => self.status(1),
            Step::UpdateAlloc => self.report(),
            Step::Register => {
                self.registrations += 1;
                let document = Box::new(node_document(1, &format!("r{}", self.registrations)));
                self.world.submit(Command::RegisterNode { document })
            }
            Step::Look => {
                self.seen = self.look();
                return;
            }
            Step::Commit => match self.seen.take() {
                Some(settlement) => self.world.submit(Command::SettleEval(Box::new(settlement))),
                None => return,
            },
        };
        self.check(step, &before, &outcome);
    }

    fn check(&mut self, step: Step, before: &state::State, outcome: &Result<Decision, Rejection>) {
        let row = self.world.state.nodes.find(node_id(1)).unwrap();
        let (was, is) = (before.nodes.hot(row), self.world.state.nodes.hot(row));
        if step == Step::Register {
            assert_eq!(was.status, is.status, "P2: registering never sets the status");
        }
        if step == Step::UpdateAlloc && was.status.is_silent() {
            assert!(matches!(outcome, Err(Rejection::NodeSilent(..))), "P3: a silent node is refused");
            assert_eq!(before.index, self.world.state.index, "P3: and writes nothing");
        }
        if step == Step::UpdateAlloc && outcome.is_ok() {
            self.reported = self.world.state.index;
        }
        if !was.status.is_silent() && is.status.is_silent() {
            self.silent_since = self.world.state.index;
        }
        if was.status != NodeStatus::Ready && is.status == NodeStatus::Ready {
            let live = allocs_on(before, row).any(|alloc| !alloc.is_terminal());
            assert!(!live || self.reported > self.silent_since, "P2: ready before it told what it runs");
        }
        if let Ok(decision) = outcome {
            decision.events.iter().for_each(|event| check_event(before, event));
        }
    }

    /// Faults end: the node speaks, schedulers look, time passes. Then all that is wanted runs, once.
    fn calm(&mut self, count: u32) {
        let mut quiet = 0;
        for _ in 0..CALM_ROUNDS_MAX {
            let before = self.world.state.index;
            self.status(1).ok();
            self.report().ok();
            self.report_node(2).ok();
            self.world.now = self.world.now.plus(Duration::from_secs(20));
            while self.pass() {}
            quiet = if self.world.state.index == before { quiet + 1 } else { 0 };
            // Longer than any delay of the job.
            if quiet == 4 {
                break;
            }
        }
        let row = self.world.state.nodes.find(node_id(1)).unwrap();
        assert_eq!(self.world.state.nodes.hot(row).status, NodeStatus::Ready);
        let wanted = self.wanted();
        assert_eq!(wanted.len() as u32, count, "as many as wanted are wanted to run");
        assert!(wanted.iter().all(|alloc| alloc.client == ClientStatus::Running), "and run");
        assert!(wanted.iter().all(|alloc| !alloc.needs_to_reconnect()), "P4: and are ordinary again");
        let mut names: Vec<u32> = wanted.iter().map(|alloc| alloc.name_index).collect();
        names.sort_unstable();
        assert_eq!(names, (0..count).collect::<Vec<_>>());
        assert!(self.look().is_none(), "nothing is left to be done");
        self.world.check_replay();
    }

    fn status(&mut self, number: u128) -> Result<Decision, Rejection> {
        let node = node_id(number);
        let claimed = NodeStatus::Ready;
        self.world.submit_as(model::Actor::Node(node), Command::UpdateNodeStatus { node, claimed })
    }

    fn report(&mut self) -> Result<Decision, Rejection> {
        self.report_node(1)
    }

    /// The node has done what is desired of it: what is wanted runs, what is not has ended.
    fn report_node(&mut self, number: u128) -> Result<Decision, Rejection> {
        let state = &self.world.state;
        let Some(row) = state.nodes.find(node_id(number)) else { return Err(Rejection::NoUpdates) };
        let update = |alloc: &Alloc| model::document::Allocation {
            id: alloc.id.to_string(),
            client_status: if alloc.is_stopping() { "complete" } else { "running" }.to_string(),
            ..Default::default()
        };
        let updates = allocs_on(state, row).map(update).collect();
        self.world.submit(Command::UpdateAllocs { node: node_id(number), updates })
    }

    /// One scheduler, from looking to committing. False when nothing waits.
    fn pass(&mut self) -> bool {
        let Some(settlement) = self.look() else { return false };
        self.world.submit(Command::SettleEval(Box::new(settlement))).unwrap();
        true
    }

    /// What a scheduler makes of the job's next evaluation that is due.
    fn look(&self) -> Option<Settlement> {
        let state = &self.world.state;
        let job = state.jobs.lookup(&key("web"))?;
        let live = job.live_evals.iter().map(|row| state.evals.get(*row));
        let due = |eval: &&state::eval::Eval| match eval.status {
            EvalStatus::Pending => {
                eval.facts.wait_until == Time::ZERO || eval.facts.wait_until <= self.world.now
            }
            EvalStatus::Blocked => eval.may_be_unblocked(state),
            EvalStatus::Complete | EvalStatus::Failed | EvalStatus::Canceled => false,
        };
        let eval = live.filter(due).min_by_key(|eval| eval.created)?;
        Some(placement::schedule(state, eval, state.index.0, self.world.now).settlement)
    }

    fn wanted(&self) -> Vec<&Alloc> {
        let allocs = self.world.state.allocs.iter().map(|(_, alloc)| alloc);
        allocs.filter(|alloc| alloc.desired == Desired::Run && !alloc.client.is_terminal()).collect()
    }
}

fn check_event(before: &state::State, event: &Event) {
    match event {
        Event::AllocsPlaced(placed) => {
            let replaced = placed.previous.iter().filter_map(|id| before.allocs.lookup(*id));
            for alloc in replaced.filter(|alloc| !alloc.is_terminal()) {
                let silent = before.nodes.hot(alloc.node).status.is_silent();
                assert!(silent, "P1: replaced although it runs and its node is back");
            }
        }
        Event::AllocsReconnected(back) => {
            for alloc in back.allocs.iter().map(|id| before.allocs.lookup(*id).unwrap()) {
                assert!(alloc.needs_to_reconnect(), "P4: a return is recorded once");
                assert_eq!(alloc.desired, Desired::Run, "P5: what is stopped never reconnects");
            }
        }
        _ => {}
    }
}

fn allocs_on(state: &state::State, row: state::node::NodeRow) -> impl Iterator<Item = &Alloc> {
    state.nodes.load(row).allocs.iter().map(|alloc| state.allocs.get(*alloc))
}

fn job(count: u32, policy: Policy) -> Job {
    let disconnect = match policy {
        Policy::Plain => serde_json::Value::Null,
        Policy::Replaced => {
            serde_json::json!({"LostAfter": "60s", "Replace": true, "Reconcile": "keep_original"})
        }
        Policy::Kept => serde_json::json!({"LostAfter": "60s", "Replace": false}),
    };
    let document = serde_json::json!({
        "ID": "web", "Name": "web", "Namespace": "default", "Type": "service", "Priority": 50,
        "Datacenters": ["*"], "NodePool": "default",
        "TaskGroups": [{
            "Name": "g", "Count": count, "Disconnect": disconnect,
            "ReschedulePolicy": {"Unlimited": true, "Delay": "0s", "DelayFunction": "constant"},
            "Tasks": [{"Name": "t", "Driver": "none", "Resources": {"CPU": 100, "MemoryMB": 64}}],
        }],
    });
    input::from_value(document).expect("the job is well formed")
}

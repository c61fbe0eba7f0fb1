//! Nodes that are emptied: from the order to the last allocation, the scheduler included.

use std::collections::BTreeMap;

use crate::support::deploy::*;
use crate::support::*;
use base::Duration;
use model::command::DrainWish;
use model::document::{Job, MigrateStrategy};
use model::event::Event;
use model::{Actor, AllocId, ClientStatus, Command, Desired, DrainStatus, Eligibility, Rejection};
use placement::Outcome;
use rules::{Context, decide};
use state::node::Drain;

const HOUR: i64 = 3600;

impl World {
    /// Orders a node to be emptied within so many seconds, or calls it off.
    fn empty(&mut self, node: u128, deadline: Option<i64>) {
        let wish = |secs| DrainWish { deadline: Duration::from_secs(secs), ignore_system_jobs: false };
        self.order(node, deadline.map(wish), false);
    }

    fn order(&mut self, node: u128, drain: Option<DrainWish>, mark_eligible: bool) {
        let node = node_id(node);
        self.submit(Command::SetNodeDrain { node, drain, mark_eligible, meta: BTreeMap::new() });
    }

    /// What is due for the node is done, as the leader's watcher would have it: the number of allocations that are
    /// asked to move.
    fn look_at(&mut self, node: u128) -> usize {
        let decision = self.submit(Command::AdvanceDrain { node: node_id(node) });
        let asked = decision.events.iter().map(|event| match event {
            Event::AllocTransitionRequested(event) => event.allocs.len(),
            _ => 0,
        });
        asked.sum()
    }

    /// [`World::look_at`], and the scheduler does what is asked.
    fn move_from(&mut self, node: u128) -> Outcome {
        assert!(self.look_at(node) > 0, "something is asked to move");
        self.work_off()
    }

    fn drain_of(&self, node: u128) -> &Drain {
        let row = self.state.nodes.find(node_id(node)).expect("the node is known");
        self.state.nodes.cold(row).drain.as_ref().expect("the node was emptied once")
    }

    fn eligibility(&self, node: u128) -> Eligibility {
        self.state.nodes.hot(self.state.nodes.find(node_id(node)).expect("the node is known")).eligibility
    }

    fn refused(&self, command: Command) -> Rejection {
        let index = self.state.index.next();
        let mut ctx = Context::new(index, self.now, index.0);
        let decision = decide(&self.state, &mut ctx, &Actor::ANONYMOUS, &command);
        decision.expect_err("the command is refused")
    }

    /// The nodes do what the servers want.
    fn nodes_obey(&mut self) {
        let allocs = self.state.allocs.iter().map(|(_, alloc)| alloc);
        let told = allocs.filter(|alloc| alloc.is_stopping() && !alloc.client.is_terminal());
        let told: Vec<AllocId> = told.map(|alloc| alloc.id).collect();
        told.into_iter().for_each(|alloc| self.report(alloc, ClientStatus::Complete));
    }

    /// Whatever runs is well.
    fn all_well(&mut self) {
        let wanted: Vec<AllocId> = self.wanted().iter().map(|alloc| alloc.id).collect();
        wanted.into_iter().for_each(|alloc| self.judge(alloc, true));
    }

    /// Where its wanted allocations are.
    fn hosts(&self) -> Vec<u128> {
        self.wanted().iter().map(|alloc| number(alloc.node_id)).collect()
    }
}

/// With allocations that are well, and where the first of them is.
fn well(job: Job, count: u128) -> (World, u128) {
    let mut world = World::running(job, count);
    world.all_well();
    let host = host(&world, 0);
    (world, host)
}

fn migrates(max_parallel: i64) -> impl Fn(&mut Job) {
    move |job| {
        let migrate = MigrateStrategy { max_parallel: Some(max_parallel), ..MigrateStrategy::default() };
        group(job).migrate = Some(migrate);
    }
}

#[test]
fn a_node_is_empty_once_what_ran_there_has_ended() {
    let (mut world, node) = well(job("service", 2), 2);
    world.empty(node, Some(HOUR));
    assert_eq!(world.eligibility(node), Eligibility::Ineligible);
    assert_eq!(counters(&world.move_from(node)), "ignore 1, migrate 1");
    assert!(!world.hosts().contains(&node));
    assert_eq!((world.look_at(node), world.drain_of(node).status), (0, DrainStatus::Draining));
    world.nodes_obey();
    world.look_at(node);
    assert_eq!(world.drain_of(node).status, DrainStatus::Complete);
    assert_eq!(
        world.eligibility(node),
        Eligibility::Ineligible,
        "it stays out until somebody says otherwise"
    );
}

#[test]
fn an_empty_node_is_empty_at_once() {
    let (mut world, node) = well(job("service", 1), 1);
    let other = world.free_nodes().find(|free| *free != node).unwrap();
    world.empty(other, Some(HOUR));
    world.look_at(other);
    assert_eq!(world.drain_of(other).status, DrainStatus::Complete);
}

/// As many at once as the group's migrate block allows, over all nodes that are emptied.
#[test]
fn a_group_keeps_what_it_cannot_spare() {
    for (max_parallel, first) in [(1, [1, 0]), (2, [1, 1])] {
        let (mut world, _) = well(job("service", 2).with(migrates(max_parallel)), 2);
        let hosts = world.hosts();
        hosts.iter().for_each(|node| world.empty(*node, Some(HOUR)));
        let asked: Vec<usize> = hosts.iter().map(|node| world.look_at(*node)).collect();
        assert_eq!(asked, first, "{max_parallel} at once");
        world.work_off();
        assert_eq!(world.look_at(hosts[1]), 0, "the successor is not well yet");
        world.all_run();
        world.all_well();
        assert_eq!(world.look_at(hosts[1]), 1 - first[1]);
    }
}

#[test]
fn nobody_is_moved_whose_group_was_not_judged_yet() {
    let mut world = World::running(job("service", 1), 1);
    let node = host(&world, 0);
    world.empty(node, Some(HOUR));
    assert_eq!(world.look_at(node), 0);
    world.pass(HOUR);
    assert_eq!(counters(&world.move_from(node)), "migrate 1");
    let row = world.state.nodes.find(node_id(node)).unwrap();
    let (last, _) = world.state.nodes.cold(row).messages.last().unwrap();
    assert_eq!((last.text.as_str(), last.details.len()), ("Node drain complete", 1));
}

#[test]
fn a_batch_runs_to_its_end_or_to_the_deadline() {
    for deadline in [0, HOUR] {
        let mut world = World::running(job("batch", 1), 1);
        let (node, alloc) = (host(&world, 0), world.named(0));
        world.empty(node, Some(deadline));
        world.pass(2 * HOUR);
        let asked = world.look_at(node);
        if deadline == 0 {
            assert_eq!(asked, 0, "without a deadline it is waited for");
            world.report(alloc, ClientStatus::Complete);
            world.look_at(node);
        } else {
            assert_eq!(asked, 1);
            world.work_off();
            assert_eq!(world.alloc(alloc).desired, Desired::Stop);
            assert!(world.wanted().is_empty(), "nothing takes its place");
        }
        assert_eq!(world.drain_of(node).status, DrainStatus::Complete);
    }
}

#[test]
fn system_jobs_go_last_or_not_at_all() {
    for (ignore_system_jobs, asked) in [(false, 1), (true, 0)] {
        let mut world = World::with_nodes(1);
        world.run(job("system", 1));
        world.all_run();
        let wish = DrainWish { deadline: Duration::from_secs(HOUR), ignore_system_jobs };
        world.order(1, Some(wish), false);
        assert_eq!(world.look_at(1), asked);
        assert_eq!(world.drain_of(1).status, DrainStatus::Complete);
        if asked > 0 {
            world.work_off();
        }
        assert_eq!(world.wanted().len(), 1 - asked);
    }
}

#[test]
fn a_forced_drain_waits_for_nobody() {
    let (mut world, node) = well(job("service", 1), 1);
    world.empty(node, Some(-1));
    assert_eq!(counters(&world.move_from(node)), "migrate 1");
    assert_eq!(world.drain_of(node).status, DrainStatus::Complete);
}

#[test]
fn a_drain_is_ordered_otherwise_and_called_off() {
    let (mut world, node) = well(job("service", 1), 1);
    world.empty(node, Some(HOUR));
    let started = world.now;
    world.pass(60);
    world.empty(node, Some(2 * HOUR));
    let drain = world.drain_of(node);
    assert_eq!((drain.started, drain.updated), (started, world.now));
    assert_eq!(drain.order.force_at, world.now.plus(Duration::from_secs(2 * HOUR)));
    world.empty(node, None);
    let ended = (world.drain_of(node).status, world.eligibility(node));
    assert_eq!(ended, (DrainStatus::Canceled, Eligibility::Ineligible));
    assert_eq!(world.look_at(node), 0);
    world.order(node, None, true);
    assert_eq!(world.eligibility(node), Eligibility::Eligible, "without a drain it only takes work again");
}

#[test]
fn jobs_look_again_at_a_node_that_is_not_emptied_any_more() {
    let (mut world, node) = well(job("service", 1), 1);
    world.empty(node, Some(HOUR));
    world.order(node, None, true);
    assert_eq!((world.pending().len(), world.eligibility(node)), (1, Eligibility::Eligible));
}

#[test]
fn a_node_takes_no_work_while_it_is_emptied() {
    let (mut world, node) = well(job("service", 1), 1);
    world.empty(node, Some(HOUR));
    let eligible = Command::SetNodeEligibility { node: node_id(node), to: Eligibility::Eligible };
    assert_eq!(world.refused(eligible), Rejection::NodeDraining(node_id(node)));
}

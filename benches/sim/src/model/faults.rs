//! What goes wrong, and that it stops.

use base::{Duration, Rng};

use super::world::{Event, World};
use crate::clock::draw_speed;
use crate::fact::Violation;
use crate::options::{Every, Faults};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Depose,
    CrashServer,
    PauseServer,
    StepServerClock,
    DriftServerClock,
    StallLog,
    CutNode,
    RestartAgent,
    RebootNode,
    StepNodeClock,
    DriftNodeClock,
    KillWorker,
    SlowWorker,
}

const ALL: [Fault; 13] = [
    Fault::Depose,
    Fault::CrashServer,
    Fault::PauseServer,
    Fault::StepServerClock,
    Fault::DriftServerClock,
    Fault::StallLog,
    Fault::CutNode,
    Fault::RestartAgent,
    Fault::RebootNode,
    Fault::StepNodeClock,
    Fault::DriftNodeClock,
    Fault::KillWorker,
    Fault::SlowWorker,
];

impl Fault {
    fn every(self, faults: &Faults) -> Every {
        match self {
            Fault::Depose => faults.depose,
            Fault::CrashServer => faults.crash_server,
            Fault::PauseServer => faults.pause_server,
            Fault::StepServerClock => faults.step_server_clock,
            Fault::DriftServerClock => faults.drift_server_clock,
            Fault::StallLog => faults.stall_log,
            Fault::CutNode => faults.cut_node,
            Fault::RestartAgent => faults.restart_agent,
            Fault::RebootNode => faults.reboot_node,
            Fault::StepNodeClock => faults.step_node_clock,
            Fault::DriftNodeClock => faults.drift_node_clock,
            Fault::KillWorker => faults.kill_worker,
            Fault::SlowWorker => faults.slow_worker,
        }
    }
}

/// The next of something that happens about every so often.
pub(super) fn next(chance: &mut Rng, every: Duration) -> Duration {
    World::up_to(chance, Duration(2 * every.0))
}

impl World {
    pub fn plan_faults(&mut self) {
        ALL.into_iter().for_each(|fault| self.plan_fault(fault));
    }

    fn plan_fault(&mut self, fault: Fault) {
        if let Some(every) = fault.every(&self.options.faults) {
            let span = next(&mut self.fault_chance, every);
            self.agenda.after(span, Event::Break(fault));
        }
    }

    pub fn break_something(&mut self, fault: Fault) -> Result<(), Violation> {
        if self.calm {
            return Ok(());
        }
        self.plan_fault(fault);
        let server = self.fault_chance.below(self.servers.len() as u64) as usize;
        let node = self.fault_chance.below(self.nodes.len() as u64) as usize;
        let well = self.servers[server].up && !self.servers[server].paused;
        match fault {
            Fault::Depose if self.log.leader().is_some() => {
                self.tell(format_args!("the leader is deposed"));
                self.lose_leader(Duration::from_secs(3));
            }
            Fault::CrashServer if self.servers[server].up => {
                let back = World::up_to(&mut self.fault_chance, Duration::from_secs(30));
                self.crash(server, back)?;
            }
            Fault::PauseServer if well => {
                let span = World::up_to(&mut self.fault_chance, Duration::from_secs(15));
                self.pause(server, span);
            }
            Fault::StepServerClock => {
                let ahead = self.clock_step();
                self.step_clock(server, ahead)?;
            }
            Fault::DriftServerClock => {
                let fast = draw_speed(&mut self.drift_chance, self.options.faults.drift_max);
                self.drift_server(server, fast)?;
            }
            Fault::StallLog => {
                let span = World::up_to(&mut self.fault_chance, Duration::from_secs(20));
                self.tell(format_args!("nothing is committed for {} ms", span.as_millis()));
                self.stalled_until = self.true_time().plus(span);
            }
            Fault::CutNode => self.cut(node),
            Fault::RestartAgent | Fault::RebootNode => self.stop_node(node, fault == Fault::RebootNode),
            Fault::StepNodeClock => {
                let ahead = self.clock_step();
                self.tell(format_args!("the clock of node {node} is now {} ms ahead", ahead.as_millis()));
                let now = self.true_time();
                self.nodes[node].clock.set(now, ahead);
            }
            Fault::DriftNodeClock => {
                let fast = draw_speed(&mut self.drift_chance, self.options.faults.drift_max);
                self.drift_node(node, fast);
            }
            Fault::KillWorker => {
                self.tell(format_args!("a worker of server {server} dies"));
                self.workers[server][0].die();
                self.flush_worker(server, 0)?;
            }
            Fault::SlowWorker => {
                let slowness = World::up_to(&mut self.fault_chance, Duration::from_secs(100));
                self.tell(format_args!(
                    "a worker of server {server} takes up to {} ms",
                    slowness.as_millis()
                ));
                self.workers[server][0].slowness = slowness;
            }
            Fault::Depose | Fault::CrashServer | Fault::PauseServer => {}
        }
        Ok(())
    }

    /// No two clocks are equally fast.
    pub fn draw_speeds(&mut self) -> Result<(), Violation> {
        let most = self.options.faults.drift_max;
        for server in 0..self.servers.len() {
            let fast = draw_speed(&mut self.drift_chance, most);
            self.drift_server(server, fast)?;
        }
        for node in 0..self.nodes.len() {
            let fast = draw_speed(&mut self.drift_chance, most);
            self.drift_node(node, fast);
        }
        Ok(())
    }

    fn drift_server(&mut self, server: usize, fast: i64) -> Result<(), Violation> {
        self.tell(format_args!("the clock of server {server} is too fast by {fast} parts in a million"));
        let now = self.true_time();
        let clock = &mut self.servers[server].clock;
        self.astray = self.astray.max(clock.astray(now));
        clock.drift(now, fast);
        self.flush(server)
    }

    fn drift_node(&mut self, node: usize, fast: i64) {
        self.tell(format_args!("the clock of node {node} is too fast by {fast} parts in a million"));
        let now = self.true_time();
        let clock = &mut self.nodes[node].clock;
        self.astray = self.astray.max(clock.astray(now));
        clock.drift(now, fast);
    }

    /// How far a clock is ahead, or behind.
    fn clock_step(&mut self) -> Duration {
        let most = self.options.faults.step_max;
        Duration(World::up_to(&mut self.fault_chance, Duration(2 * most.0)).0 - most.0)
    }

    fn cut(&mut self, node: usize) {
        let span = World::up_to(&mut self.fault_chance, Duration::from_secs(180));
        self.tell(format_args!("node {node} is cut off for {} ms", span.as_millis()));
        self.cut.insert(node);
        self.agenda.after(span, Event::Mend(node));
    }

    pub fn mend(&mut self, node: usize) -> Result<(), Violation> {
        if self.cut.remove(&node) {
            self.tell(format_args!("node {node} is connected again"));
        }
        Ok(())
    }

    fn stop_node(&mut self, node: usize, with_tasks: bool) {
        if !self.nodes[node].up {
            return;
        }
        let what = if with_tasks { "goes down" } else { "loses its agent" };
        self.tell(format_args!("node {node} {what}"));
        self.nodes[node].stop(with_tasks);
        let span = World::up_to(&mut self.fault_chance, Duration::from_secs(60));
        let life = self.nodes[node].life;
        self.agenda.after(span, Event::StartNode(node, life));
    }

    pub fn start_node(&mut self, node: usize, life: u64) -> Result<(), Violation> {
        if self.nodes[node].up || self.nodes[node].life != life {
            return Ok(());
        }
        self.tell(format_args!("node {node} starts again"));
        let now = self.true_time();
        let World { nodes, options, .. } = self;
        nodes[node].start_again(now, &options.tasks);
        self.flush_node(node);
        Ok(())
    }

    /// Faults end: everybody is up, connected, on time and quick.
    pub fn calm_down(&mut self) -> Result<(), Violation> {
        self.tell(format_args!("calm"));
        self.calm = true;
        self.cut.clear();
        self.stalled_until = self.true_time();
        self.options.tasks.failing = 0;
        for server in 0..self.servers.len() {
            let life = self.servers[server].life;
            self.start_server(server, life)?;
            self.resume(server, life)?;
            self.drift_server(server, 0)?;
            self.step_clock(server, Duration::ZERO)?;
            for worker in &mut self.workers[server] {
                worker.slowness = Duration::from_millis(50);
            }
        }
        for node in 0..self.nodes.len() {
            self.drift_node(node, 0);
            let now = self.true_time();
            self.nodes[node].clock.set(now, Duration::ZERO);
            let life = self.nodes[node].life;
            self.start_node(node, life)?;
        }
        if self.log.leader().is_none() {
            self.call_election(Duration::from_secs(1));
        }
        self.settle();
        Ok(())
    }
}

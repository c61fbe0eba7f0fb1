//! What each server does because of other regions, as `server` does it: followers of the authoritative region, and the watch
//! over deployments of jobs in several regions.

use base::{Duration, Index};
use control::{LeaderAnswer, SubmitError};
use federation::{Answer, Failure, Follower, Need, Outcome, Submitted};
use model::{Actor, Command, Request, SealedData, TokenSecret};
use state::node::secret_hash;

use super::link::Letter;
use super::options::NAMES;
use super::rollouts::RolloutTask;
use super::world::{Caller, Event, Federation};
use crate::model::call::{Ask, Party, Reply};
use crate::model::world::World;
use crate::planted::Bug;

/// The region that decides for all.
pub(super) const AUTHORITATIVE: usize = 0;

/// How long an answer of another region may take, as in `server`.
const ANSWER_MAX: Duration = Duration::from_secs(120);
/// How long it takes until somebody knows that there is no way to a region.
const OPEN_MAX: Duration = Duration::from_secs(3);
/// How long a decision may take, and how long until it is seen.
const DECISION_MAX: Duration = Duration::from_secs(30);
/// How soon a paused server goes on with what was due.
const PAUSED: Duration = Duration::from_millis(200);

/// A task of a server in one of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskId {
    pub region: usize,
    pub server: usize,
    pub life: u64,
    pub task: Which,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Follower(usize),
    Rollouts,
}

#[derive(Default)]
pub(super) struct ServerTasks {
    /// The life that they belong to, once there was one.
    pub life: Option<u64>,
    pub followers: Vec<FollowerTask>,
    pub rollouts: RolloutTask,
    /// Planted: it was known from the beginning that this server leads.
    led: bool,
}

pub(super) struct FollowerTask {
    machine: Follower,
    /// What was meant for an earlier one is void.
    turn: u64,
    waits: Waits,
}

#[derive(Debug)]
enum Waits {
    ForTime,
    /// To lead.
    Parked,
    ForAnswer,
    ForDecision,
    /// That its server sees it.
    ToSee(Index),
}

impl Federation {
    pub fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    /// A server that has started has new tasks; of one that is down there are none. What waited for it to lead goes on.
    pub fn keep_tasks(&mut self, region: usize) {
        for server in 0..self.regions[region].world.servers.len() {
            let one = &self.regions[region].world.servers[server];
            let life = one.up.then_some(one.life);
            if self.regions[region].tasks[server].life != life {
                self.regions[region].tasks[server] = ServerTasks { life, ..ServerTasks::default() };
                if let Some(life) = life {
                    self.start_tasks(region, server, life);
                }
            }
            if !self.may_act(region, server) {
                continue;
            }
            let tasks = &mut self.regions[region].tasks[server];
            tasks.led = true;
            let parked = |(_, task): &(usize, &FollowerTask)| matches!(task.waits, Waits::Parked);
            let parked: Vec<(usize, u64)> =
                tasks.followers.iter().enumerate().filter(parked).map(|(at, task)| (at, task.turn)).collect();
            let life = tasks.life.unwrap_or_default();
            for (at, turn) in parked {
                let by = TaskId { region, server, life, task: Which::Follower(at) };
                self.go_on(by, turn, Outcome::Rested);
            }
        }
    }

    /// It leads, and runs.
    pub fn may_act(&self, region: usize, server: usize) -> bool {
        let region_of = &self.regions[region];
        let one = &region_of.world.servers[server];
        let is_late = self.bug == Some(Bug::FollowsFirstOnly)
            && region_of.world.log.term().0 > 1
            && !region_of.tasks[server].led;
        one.up && !one.paused && one.leads() && !is_late
    }

    fn start_tasks(&mut self, region: usize, server: usize, life: u64) {
        let by = |task| TaskId { region, server, life, task };
        if region != AUTHORITATIVE {
            for (at, mut machine) in Follower::all().into_iter().enumerate() {
                let (turn, need) = (self.next_turn(), machine.begin());
                let task = FollowerTask { machine, turn, waits: Waits::ForTime };
                self.regions[region].tasks[server].followers.push(task);
                self.meet(by(Which::Follower(at)), need);
            }
        }
        let turn = self.next_turn();
        self.regions[region].tasks[server].rollouts = RolloutTask::resting(turn);
        self.after(Duration::ZERO, Event::Rested { by: by(Which::Rollouts), turn });
    }

    /// The task, if it still is what the turn was for.
    fn follower(&mut self, by: TaskId, turn: u64) -> Option<&mut FollowerTask> {
        let Which::Follower(at) = by.task else { return None };
        let tasks = &mut self.regions[by.region].tasks[by.server];
        let task = tasks.followers.get_mut(at).filter(|_| tasks.life == Some(by.life));
        task.filter(|task| task.turn == turn)
    }

    /// What was due at a paused server is due once it goes on.
    fn is_held(&mut self, by: TaskId, event: Event) -> Option<Event> {
        let one = &self.regions[by.region].world.servers[by.server];
        if one.up && one.life == by.life && one.paused {
            self.after(PAUSED, event);
            return None;
        }
        Some(event)
    }

    pub fn has_rested(&mut self, by: TaskId, turn: u64) {
        if self.is_held(by, Event::Rested { by, turn }).is_none() {
            return;
        }
        if by.task == Which::Rollouts {
            return self.look_at_rollouts(by, turn);
        }
        let may_act = self.may_act(by.region, by.server);
        match self.follower(by, turn) {
            Some(task) if !may_act => task.waits = Waits::Parked,
            Some(_) => self.go_on(by, turn, Outcome::Rested),
            None => {}
        }
    }

    pub fn task_timed_out(&mut self, by: TaskId, turn: u64) {
        if self.is_held(by, Event::TimedOut { by, turn }).is_none() {
            return;
        }
        if by.task == Which::Rollouts {
            return self.decide_on_rollouts(by, turn);
        }
        let Some(task) = self.follower(by, turn) else { return };
        let outcome = match task.waits {
            Waits::ForAnswer => Outcome::Read(Err(Failure::Other("no answer".to_string()))),
            Waits::ForDecision | Waits::ToSee(_) => {
                Outcome::Submitted(Submitted::Unknown("no decision".to_string()))
            }
            Waits::ForTime | Waits::Parked => return,
        };
        self.go_on(by, turn, outcome)
    }

    pub fn has_read(&mut self, by: TaskId, turn: u64, answer: Result<Answer, Failure>) {
        if let Some(Waits::ForAnswer) = self.follower(by, turn).map(|task| &task.waits) {
            self.go_on(by, turn, Outcome::Read(answer));
        }
    }

    pub fn task_hears(&mut self, by: TaskId, turn: u64, reply: Reply) {
        let reached = self.regions[by.region].world.servers[by.server].published.index;
        let Some(task) = self.follower(by, turn) else { return };
        let submitted = match reply {
            Reply::Leader(LeaderAnswer::Submitted(Ok(receipt))) if receipt.index > reached => {
                task.waits = Waits::ToSee(receipt.index);
                return;
            }
            Reply::Leader(LeaderAnswer::Submitted(Ok(_))) => Submitted::Done,
            Reply::Leader(LeaderAnswer::Submitted(Err(SubmitError::Rejected(why)))) => {
                Submitted::Rejected(why.to_string())
            }
            Reply::Leader(LeaderAnswer::Submitted(Err(error))) => Submitted::Unknown(error.to_string()),
            other => Submitted::Unknown(other.name()),
        };
        self.go_on(by, turn, Outcome::Submitted(submitted))
    }

    /// Servers of a region have published more.
    pub fn tasks_reach(&mut self, region: usize) {
        for server in 0..self.regions[region].tasks.len() {
            let reached = self.regions[region].seen[server];
            let tasks = &self.regions[region].tasks[server];
            let Some(life) = tasks.life else { continue };
            let sees =
                |(_, task): &(usize, &FollowerTask)| matches!(task.waits, Waits::ToSee(at) if at <= reached);
            let seeing: Vec<(usize, u64)> =
                tasks.followers.iter().enumerate().filter(sees).map(|(at, task)| (at, task.turn)).collect();
            for (at, turn) in seeing {
                let by = TaskId { region, server, life, task: Which::Follower(at) };
                self.go_on(by, turn, Outcome::Submitted(Submitted::Done));
            }
        }
    }

    fn go_on(&mut self, by: TaskId, turn: u64, outcome: Outcome) {
        let next = self.next_turn();
        let now = self.now();
        let server = &self.regions[by.region].world.servers[by.server];
        let (state, clock) = (server.published.clone(), server.clock(now));
        let Some(task) = self.follower(by, turn) else { return };
        task.turn = next;
        let need = task.machine.step(outcome, &state, clock);
        if let Some(why) = task.machine.news() {
            let what = task.machine.name();
            self.tell(format_args!("{}: server {} has not all {what}: {why}", NAMES[by.region], by.server));
        }
        self.meet(by, need);
    }

    /// Carries out what a follower needs, as `server` does.
    fn meet(&mut self, by: TaskId, need: Need) {
        let Which::Follower(at) = by.task else { unreachable!("only followers have needs") };
        let turn = self.regions[by.region].tasks[by.server].followers[at].turn;
        let waits = match need {
            Need::Rest(span) => {
                let span = self.regions[by.region].world.servers[by.server].clock.takes(span);
                self.after(span, Event::Rested { by, turn });
                Waits::ForTime
            }
            Need::Read(path) => {
                self.read(by, turn, path);
                Waits::ForAnswer
            }
            Need::Seal { accessor, secret } => {
                let sealed = SealedData { key: accessor, bytes: secret.clone().into_bytes() };
                let secret = TokenSecret { digest: secret_hash(&secret), sealed };
                return self.go_on(by, turn, Outcome::Sealed(Ok(secret)));
            }
            Need::Submit(command) if self.is_overlooked(&command) => {
                // Planted: nobody misses what is gone.
                return self.go_on(by, turn, Outcome::Submitted(Submitted::Done));
            }
            Need::Submit(command) => {
                let actor = Actor::Server(format!("replication:{}", NAMES[AUTHORITATIVE]));
                self.submit(by, turn, Request::unnamed(actor, *command));
                self.after(DECISION_MAX, Event::TimedOut { by, turn });
                Waits::ForDecision
            }
        };
        self.regions[by.region].tasks[by.server].followers[at].waits = waits;
    }

    fn is_overlooked(&self, command: &Command) -> bool {
        self.bug == Some(Bug::DeletionsOverlooked)
            && matches!(
                command,
                Command::DeleteAclPolicy { .. }
                    | Command::DeleteAclRole { .. }
                    | Command::DeleteAclTokens { .. }
                    | Command::DeleteNamespace { .. }
                    | Command::DeleteNodePool { .. }
            )
    }

    fn read(&mut self, by: TaskId, turn: u64, path: String) {
        if self.is_cut(by.region, AUTHORITATIVE) {
            let soon = World::up_to(&mut self.wires, OPEN_MAX);
            return self.after(soon, Event::TimedOut { by, turn });
        }
        self.post(by.region, AUTHORITATIVE, Letter::Read { by, turn, path });
        if self.bug != Some(Bug::WaitsForEver) {
            self.after(ANSWER_MAX, Event::TimedOut { by, turn });
        }
    }

    /// Has the leader of the region decide.
    pub fn submit(&mut self, by: TaskId, turn: u64, request: Request) {
        let party = Party::Federation { server: by.server };
        let region = &mut self.regions[by.region];
        let number = region.world.call(party, by.server, Ask::submit(request));
        region.calls.insert(number, Caller::Task { by, turn });
    }
}

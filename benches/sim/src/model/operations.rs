//! People and their tools at work, each through a client that wants to know what became of it.

use base::Duration;
use model::Command;

use super::call::{Ask, Party, Reply};
use super::client::Next;
use super::faults::next;
use super::world::{Event, World};
use crate::fact::{Fact, Violation};

/// What is asked beside the writes of clients.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    Eligibility,
    StopAlloc,
    Evaluate,
    DeregisterNode,
    ChangeNode,
    Drain,
    Dispatch,
    Scale,
    SteerDeployment,
    ConfigureScheduler,
    Volume,
    Variable,
    Cursor,
}

const ALL: [Operation; 13] = [
    Operation::Eligibility,
    Operation::StopAlloc,
    Operation::Evaluate,
    Operation::DeregisterNode,
    Operation::ChangeNode,
    Operation::Drain,
    Operation::Dispatch,
    Operation::Scale,
    Operation::SteerDeployment,
    Operation::ConfigureScheduler,
    Operation::Volume,
    Operation::Variable,
    Operation::Cursor,
];

impl World {
    pub fn plan_operations(&mut self) {
        ALL.into_iter().for_each(|operation| self.plan_operation(operation));
    }

    fn plan_operation(&mut self, operation: Operation) {
        let operations = &self.options.operations;
        let every = match operation {
            Operation::Eligibility => operations.eligibility,
            Operation::StopAlloc => operations.stop_alloc,
            Operation::Evaluate => operations.evaluate,
            Operation::DeregisterNode => operations.deregister_node,
            Operation::ChangeNode => operations.change_node,
            Operation::Drain => operations.drain,
            Operation::Dispatch => operations.dispatch,
            Operation::Scale => operations.scale,
            Operation::SteerDeployment => operations.steer_deployment,
            Operation::ConfigureScheduler => operations.configure_scheduler,
            Operation::Volume => operations.volume,
            Operation::Variable => operations.variable,
            Operation::Cursor => operations.cursor,
        };
        if let Some(every) = every {
            let span = next(&mut self.work_chance, every);
            self.agenda.after(span, Event::Operate(operation));
        }
    }

    /// An operator at the first client that has nothing else to do.
    pub fn operate(&mut self, operation: Operation) -> Result<(), Violation> {
        if self.calm {
            return Ok(());
        }
        self.plan_operation(operation);
        let server = self.work_chance.below(self.servers.len() as u64) as usize;
        let seen = self.servers[server].published.clone();
        let chance = &mut self.work_chance;
        let command = match operation {
            Operation::Eligibility => Some(self.workload.eligibility(chance)),
            Operation::StopAlloc => self.workload.stop_alloc(&seen, chance),
            Operation::Evaluate => Some(self.workload.evaluate(chance)),
            Operation::DeregisterNode => Some(self.workload.deregister_node(chance)),
            Operation::Drain => Some(self.workload.drain(&seen, chance)),
            Operation::Dispatch => self.workload.dispatch(chance),
            Operation::Scale => self.workload.scale(chance),
            Operation::SteerDeployment => self.workload.steer_deployment(&seen, chance),
            Operation::ConfigureScheduler => Some(self.workload.configure_scheduler(chance)),
            Operation::Volume => Some(self.workload.volume(chance)),
            Operation::Variable => Some(self.workload.variable(&seen, chance)),
            Operation::Cursor => Some(self.workload.cursor(&seen, chance)),
            Operation::ChangeNode => {
                let node = chance.below(self.nodes.len() as u64) as usize;
                if self.nodes[node].up {
                    self.tell(format_args!("node {node} describes itself anew"));
                    self.nodes[node].change();
                    self.flush_node(node);
                }
                None
            }
        };
        let free = self.clients.iter().position(|client| client.op.is_none());
        match (command, free) {
            (Some(command), Some(client)) => self.ask_first(client, command),
            _ => Ok(()),
        }
    }

    /// A client's own rhythm: one write after another.
    pub fn client_asks(&mut self, client: usize) -> Result<(), Violation> {
        if self.calm {
            return Ok(());
        }
        let every = self.options.operations.write.expect("clients always write");
        let span = next(&mut self.work_chance, every);
        self.agenda.after(span, Event::Client(client));
        if self.clients[client].op.is_some() {
            return Ok(());
        }
        let server = self.work_chance.below(self.servers.len() as u64) as usize;
        let seen = self.servers[server].published.clone();
        let command = self.workload.write(&seen, &mut self.work_chance);
        self.ask_first(client, command)
    }

    pub fn ask_first(&mut self, client: usize, command: Command) -> Result<(), Violation> {
        self.ops += 1;
        let request = self.clients[client].begin(self.ops, command);
        self.tell(format_args!("client {client} wants {}", in_words(&request.command)));
        self.checks.see(&Fact::Asked { op: self.ops, request: &request })?;
        self.client_attempts(client)
    }

    pub fn client_attempts(&mut self, client: usize) -> Result<(), Violation> {
        if self.clients[client].pending.is_some() {
            return Ok(());
        }
        let Some(request) = self.clients[client].attempt() else { return Ok(()) };
        let entry = self.clients[client].chance.below(self.servers.len() as u64) as usize;
        let number = self.call(Party::Client(client), entry, Ask::submit(request));
        self.clients[client].pending = Some(number);
        let patience = World::up_to(&mut self.clients[client].chance, Duration::from_secs(8));
        let patience = Duration(patience.0 + Duration::from_secs(4).0);
        self.agenda.after(patience, Event::ClientTimedOut(client, number));
        Ok(())
    }

    pub fn client_timed_out(&mut self, client: usize, call: u64) -> Result<(), Violation> {
        if self.clients[client].pending == Some(call) {
            return self.client_hears(client, None);
        }
        Ok(())
    }

    pub fn client_hears(&mut self, client: usize, reply: Option<Reply>) -> Result<(), Violation> {
        let told = reply.as_ref().map_or("nothing".to_string(), Reply::name);
        self.tell(format_args!("client {client} hears: {told}"));
        match self.clients[client].hear(reply) {
            Some(Next::Known { op, outcome, open }) => {
                self.checks.see(&Fact::Answered { op, outcome: &outcome, open })
            }
            Some(Next::Again) => {
                let span = World::up_to(&mut self.clients[client].chance, Duration::from_secs(2));
                self.agenda.after(span, Event::Retry(client));
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn in_words(command: &Command) -> String {
    match command {
        Command::RegisterJob(request) => {
            let job = &request.job;
            let value = crate::workload::jobs::value_of(job).unwrap_or_default();
            let enforced =
                request.enforce_index.map_or(String::new(), |index| format!(" if it is at {index}"));
            let counts: Vec<i64> = job.task_groups.iter().map(|group| group.count.unwrap_or(1)).collect();
            format!(
                "{} {} to be {value}{enforced}, counts {counts:?}",
                job.kind.as_deref().unwrap_or_default(),
                job.id.as_deref().unwrap_or_default(),
            )
        }
        Command::DeregisterJob { key, purge, .. } => {
            format!("{} {}", if *purge { "to purge" } else { "to stop" }, key.id)
        }
        Command::EvaluateJob { key, .. } => format!("{} to be evaluated", key.id),
        Command::EvaluateNode { node } => format!("{node} to be evaluated"),
        Command::SetNodeEligibility { node, to } => format!("{node} to be {to}"),
        Command::DeregisterNode { node } => format!("{node} to be forgotten"),
        Command::StopAlloc { alloc, .. } => format!("{alloc} elsewhere"),
        Command::SetNodeDrain { node, drain, .. } => format!("{node} to be drained: {drain:?}"),
        Command::DispatchJob(request) => format!("{} to be dispatched", request.key.id),
        Command::ScaleJob(request) => format!("{} to be scaled to {:?}", request.key.id, request.count),
        Command::RegisterCsiVolume { volume } => {
            format!("{} to be a volume for {:?}", volume.id, volume.requested_capabilities)
        }
        Command::RegisterHostVolume { volume } => {
            let (node, modes) = (&volume.node_id, &volume.requested_capabilities);
            format!("{} on {node} to be a volume for {modes:?}", volume.name)
        }
        Command::DeregisterVolume { volume, force } => {
            format!("volume {} to be forgotten{}", volume.id, if *force { " by force" } else { "" })
        }
        Command::AckEventCursor { name, after } => format!("cursor {name} to be after {after:?}"),
        Command::AckEventCursorMember { name, member, after } => {
            format!("member {member} of cursor {name} to be after {after:?}")
        }
        Command::SplitEventCursor { name, members, .. } => format!("cursor {name} among {members}"),
        Command::SetVariable(request) => format!("{} to be set", request.key),
        Command::ForgetVariable { key, .. } => format!("{key} to be forgotten"),
        Command::AcquireVariableLock(request) => {
            format!("{} to be locked for {}", request.key, request.lock.ttl)
        }
        other => format!("command {}", other.kind()),
    }
}

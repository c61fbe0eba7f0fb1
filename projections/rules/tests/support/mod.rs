//! A small world for tests: commands go in by short names, the log is kept, and at the end it must replay.

use base::{Time, Uuid};
use model::document::Node;
use model::{
    Actor, Batch, Command, CommandRecord, Event, JobKey, LoggedEvent, NodeId, Rejection, Request, RequestId,
};
use rules::{Context, Decision, decide};
use state::State;

pub struct World {
    pub state: State,
    pub log: Vec<Batch>,
    pub now: Time,
}

impl World {
    pub fn new() -> World {
        World { state: State::default(), log: Vec::new(), now: Time::from_secs(1_000_000) }
    }

    /// Decides a command on the current state and folds what it leads to, as one batch.
    pub fn submit(&mut self, command: Command) -> Result<Decision, Rejection> {
        self.submit_as(Actor::ANONYMOUS, command)
    }

    pub fn submit_as(&mut self, actor: Actor, command: Command) -> Result<Decision, Rejection> {
        let index = self.state.index.next();
        let mut ctx = Context::new(index, self.now, index.0);
        let request = Request { id: RequestId::default(), actor, command };
        let decision = decide(&self.state, &mut ctx, &request.actor, &request.command)?;
        if !decision.events.is_empty() {
            let record =
                CommandRecord { request: request.id, kind: request.command.kind(), actor: request.actor };
            let logged = |event: &Event| LoggedEvent { command: 0, event: event.clone() };
            let batch = Batch {
                commands: vec![record],
                events: decision.events.iter().map(logged).collect(),
                ..self.state.next_batch(self.now, Uuid::NIL)
            };
            self.state.apply(&batch).expect("the batch was decided on this state");
            assert_eq!(self.state.digest(), self.state.recomputed_digest(), "after {}", batch.index);
            self.log.push(batch);
        }
        Ok(decision)
    }

    /// Every test that owns a log ends with this.
    pub fn check_replay(&self) {
        let mut replayed = State::default();
        for batch in &self.log {
            replayed.apply(batch).expect("the log follows on itself");
        }
        assert!(replayed == self.state, "replaying the log gives another state");
        assert_eq!(replayed.digest(), self.state.digest());
    }

    pub fn register_node(&mut self, number: u128, rack: &str) -> Result<Decision, Rejection> {
        self.submit(Command::RegisterNode { document: Box::new(node_document(number, rack)) })
    }
}

pub fn key(job: &str) -> JobKey {
    JobKey::new("default", job)
}

pub fn node_id(number: u128) -> NodeId {
    NodeId((0x90de << 112 | number).into())
}

pub fn node_document(number: u128, rack: &str) -> Node {
    let resources = serde_json::json!({"Cpu": {"CpuShares": 1000}, "Memory": {"MemoryMB": 1024}, "Disk": {"DiskMB": 9999}});
    Node {
        id: node_id(number).to_string(),
        secret_id: format!("secret-{number}"),
        name: format!("n{number}"),
        datacenter: "dc1".to_string(),
        attributes: [("kernel.name", "linux"), ("driver.none", "1")]
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .into_iter()
            .collect(),
        meta: [("rack".to_string(), rack.to_string())].into_iter().collect(),
        node_resources: Some(
            model::document::input::from_value(resources).expect("resources are well formed"),
        ),
        ..Node::default()
    }
}

//! A server in this process whose history is short: small segments, of which the last few stay.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::{Time, Uuid};
use control::Leadership;
use control::broker::BrokerSettings;
use control::heartbeats::HeartbeatSettings;
use model::event::{NodeMessage, ObjectKind};
use model::{Actor, Command, NodeId, Request};
use raft::Tail;
use serde_json::Value;
use server::{ClusterSettings, HistorySettings, Retention, Server, Settings};

use super::{CommandOutput, http, program, sojourn};

const SEGMENT_BYTES: u64 = 16 << 10;
const SEGMENTS: u64 = 4;
/// Facts that fill all segments that stay, and more.
const FILLING: usize = 60;
const NODE: NodeId = NodeId(Uuid(*b"the node of all."));
const PATIENCE: Duration = Duration::from_secs(120);

pub struct ShortHistory {
    server: Server,
}

impl ShortHistory {
    /// With its data in `data`, of which facts of these kinds are kept.
    pub async fn start(data: &Path, keep: &[ObjectKind]) -> ShortHistory {
        let history = HistorySettings {
            retention: Retention { bytes: SEGMENTS * SEGMENT_BYTES, age: None },
            keep: keep.iter().copied().collect(),
            tail: Tail { entries: 10, bytes: 1 << 20 },
            ..HistorySettings::default()
        };
        let server = Server::start(Settings { history, ..settings(data) }).await.unwrap();
        let mut leadership = server.control.leadership();
        let leads = leadership.wait_for(|who| *who == Leadership::Mine);
        tokio::time::timeout(PATIENCE, leads).await.unwrap().unwrap();
        // What the server writes by itself once it leads must not come in between.
        let mut news = server.control.watch();
        let quiet = async {
            while server.control.state().keyring.active().is_none() {
                news.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, quiet).await.unwrap();
        ShortHistory { server }
    }

    /// Writes other facts until the log begins after all that is there now.
    pub async fn let_all_go(&self) {
        let last = self.server.control.state().index;
        let document = model::document::Node {
            id: NODE.to_string(),
            secret_id: "secret".into(),
            name: "node".into(),
            datacenter: "dc1".into(),
            attributes: [("kernel.name".to_string(), "linux".to_string())].into_iter().collect(),
            ..Default::default()
        };
        self.submit(Command::RegisterNode { document: Box::new(document) }).await;
        for _ in 0..FILLING {
            self.say().await;
        }
        // The state of three moments: what the older two of them need stays.
        for _ in 0..3 {
            self.say().await;
            let control = self.server.control.clone();
            tokio::task::spawn_blocking(move || control.keep_image()).await.unwrap().unwrap();
        }
        assert!(self.server.control.journal().horizon() > last);
    }

    async fn say(&self) {
        let message = NodeMessage::new("Test", &"text".repeat(500), Time::from_secs(1));
        self.submit(Command::EmitNodeMessages { node: NODE, messages: vec![message] }).await;
    }

    async fn submit(&self, command: Command) {
        self.server.control.submit(Request::unnamed(Actor::ANONYMOUS, command)).await.unwrap();
    }

    /// The oldest index from which on everything is there.
    pub fn whole_from(&self) -> u64 {
        self.server.control.journal().horizon().0
    }

    pub async fn run(&self, arguments: &[&str]) -> CommandOutput {
        let mut command = program(&sojourn());
        command.args(arguments).env("NOMAD_ADDR", format!("http://{}", self.server.http));
        tokio::task::spawn_blocking(move || command.output().unwrap().into()).await.unwrap()
    }

    /// Status and body.
    pub async fn answer(&self, path: &str) -> (u16, String) {
        let (address, path) = (self.server.http, path.to_string());
        let got = tokio::task::spawn_blocking(move || http::get(address, &path).unwrap()).await.unwrap();
        (got.status, got.body)
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.answer(path).await;
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    pub async fn stop(self) {
        self.server.shutdown().await;
    }
}

fn settings(data: &Path) -> Settings {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Settings {
        name: "one".to_string(),
        region: "global".to_string(),
        datacenter: "dc1".to_string(),
        data_dir: data.to_path_buf(),
        http: anywhere,
        rpc: anywhere,
        advertise_http: None,
        advertise_rpc: None,
        node: None,
        garbage: Default::default(),
        introduction: Default::default(),
        access: Default::default(),
        root_keys: Default::default(),
        oidc_issuer: None,
        scheduler: Default::default(),
        heartbeats: HeartbeatSettings::default(),
        broker: BrokerSettings::default(),
        job_count_max: 50_000,
        history: HistorySettings::default(),
        identities: Default::default(),
        workers: 1,
        segment_bytes: SEGMENT_BYTES,
        scrub_every: None,
        tls: None,
        federation: Default::default(),
        cluster: ClusterSettings::alone(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        config: Arc::new(serde_json::Map::new()),
        log: Default::default(),
        audit: None,
        limits: Default::default(),
        debug: false,
        prometheus: true,
        metrics_host: false,
        ui: true,
        ui_folder: None,
        node_figures: Default::default(),
        node_routes: Default::default(),
        sink_addresses: Default::default(),
        response_headers: Default::default(),
    }
}

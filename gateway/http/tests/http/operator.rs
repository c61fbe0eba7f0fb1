//! What operators ask of the servers. The servers are pretended: what they are asked is written down.

use std::time::Duration;

use api::{
    AgentMember, JoinResponse, KeyringResponse, LeadershipTransferResponse, OperatorHealthReply,
    RaftConfiguration, RaftServer, ServerHealth, UpgradeServer,
};
use axum::body::Body;
use axum::http::Method;
use base::{Index, Time, Uuid};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use http_gateway::{
    ClusterAdmin, ClusterError, Entries, FileStream, GossipKeys, HistoryFiles, OtherHistory, PeerName,
    SnapshotFile, Snapshots,
};
use journal::store::{ArchiveStatus, HistoryFile, HistoryStatus, Retention, StoreError};
use model::Command;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::guarded::{Guarded, NOBODY};
use crate::support::{Cluster, assert_holds, node_id, request};

#[derive(Default)]
pub struct FakeServers {
    asked: Mutex<Vec<String>>,
    /// What they answer instead of doing it.
    refuse: Mutex<Option<ClusterError>>,
    unhealthy: Mutex<bool>,
    pub histories: Mutex<Vec<OtherHistory>>,
}

impl FakeServers {
    fn asked(&self, what: String) -> BoxFuture<'_, Result<(), ClusterError>> {
        self.asked.lock().push(what);
        let refusal = self.refuse.lock().clone();
        async move { refusal.map_or(Ok(()), Err) }.boxed()
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock())
    }
}

const LEADER: &str = "10.0.0.9:4647";

impl ClusterAdmin for FakeServers {
    fn members(&self) -> Vec<AgentMember> {
        let tags = [
            ("id", Uuid::from_random([9; 16]).to_string()),
            ("role", "nomad".to_string()),
            ("region", "global".to_string()),
            ("port", "4647".to_string()),
        ];
        vec![AgentMember {
            name: "one.global".to_string(),
            addr: "10.0.0.9".to_string(),
            port: 4648,
            tags: tags.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            status: "alive".to_string(),
            ..AgentMember::default()
        }]
    }

    fn regions(&self) -> Vec<String> {
        vec!["global".to_string()]
    }

    fn leader(&self) -> Option<String> {
        Some(LEADER.to_string())
    }

    fn find(&self, server: &str) -> Option<String> {
        match server {
            "leader" | "one" => Some(LEADER.to_string()),
            "two" => Some("10.0.0.8:4647".to_string()),
            _ => None,
        }
    }

    fn peers(&self) -> Vec<String> {
        vec![LEADER.to_string()]
    }

    fn figures(&self, now: std::time::Instant) -> metrics::Figures {
        let samples = metrics::Samples::default();
        samples.took("nomad.raft.leader.lastContact", now, std::time::Duration::from_millis(7));
        let gauges = vec![metrics::Gauge::new("sojourn.raft.messages_dropped_total", 3)];
        metrics::Figures { gauges, sampled: samples.report(now), host: None }
    }

    fn join(&self, addresses: Vec<String>) -> BoxFuture<'_, JoinResponse> {
        self.asked.lock().push(format!("join {}", addresses.join(" ")));
        async {
            JoinResponse { joined: 1, error: "no server answers at b".to_string(), ..Default::default() }
        }
        .boxed()
    }

    fn histories(&self) -> BoxFuture<'_, Vec<OtherHistory>> {
        let histories = self.histories.lock().clone();
        async move { histories }.boxed()
    }

    fn force_leave(&self, name: String, prune: bool) -> BoxFuture<'_, Result<(), ClusterError>> {
        self.asked(format!("force-leave {name} {prune}"))
    }

    fn gossip_keys(&self, operation: GossipKeys) -> BoxFuture<'_, Result<KeyringResponse, ClusterError>> {
        let asked = self.asked(format!("{operation:?}"));
        async move {
            asked.await?;
            let messages =
                [("two.global".to_string(), "it did not answer".to_string())].into_iter().collect();
            let keys = [("a2V5".to_string(), 1)].into_iter().collect();
            Ok(KeyringResponse { messages, keys, num_nodes: 2 })
        }
        .boxed()
    }

    fn raft_configuration(&self) -> RaftConfiguration {
        let server = RaftServer { id: "x".into(), node: "one".into(), leader: true, ..RaftServer::default() };
        RaftConfiguration { servers: vec![server].into(), index: 7 }
    }

    fn releases(&self) -> Vec<UpgradeServer> {
        let server = |name: &str, epoch: u16| UpgradeServer {
            name: name.to_string(),
            address: format!("{name}:4647"),
            version: "9.9.9".to_string(),
            epoch: epoch.into(),
            ..UpgradeServer::default()
        };
        let second = if *self.unhealthy.lock() { model::FIRST_EPOCH } else { model::EPOCH };
        vec![server("one", model::EPOCH), server("two", second)]
    }

    fn remove_peer(&self, peer: PeerName) -> BoxFuture<'_, Result<(), ClusterError>> {
        self.asked(format!("remove {peer:?}"))
    }

    fn transfer(&self, to: PeerName) -> BoxFuture<'_, Result<LeadershipTransferResponse, ClusterError>> {
        let asked = self.asked(format!("transfer {to:?}"));
        async move { asked.await.map(|()| LeadershipTransferResponse::default()) }.boxed()
    }

    fn health(&self) -> BoxFuture<'_, Result<OperatorHealthReply, ClusterError>> {
        let server = ServerHealth { id: "x".into(), last_contact: "20ms".into(), ..ServerHealth::default() };
        let healthy = !*self.unhealthy.lock();
        let health =
            OperatorHealthReply { healthy, servers: vec![server].into(), ..OperatorHealthReply::default() };
        async move { Ok(health) }.boxed()
    }
}

impl Snapshots for FakeServers {
    fn save(&self) -> BoxFuture<'_, Result<SnapshotFile, ClusterError>> {
        let asked = self.asked("save".to_string());
        let parts = ["one ", "two"].map(|part| Ok(Bytes::from_static(part.as_bytes())));
        async move {
            asked.await?;
            let digest = "sha-256=abc".to_string();
            Ok(SnapshotFile { digest, bytes: 7, index: 42, stream: stream::iter(parts).boxed() })
        }
        .boxed()
    }

    fn restore(&self, mut file: FileStream) -> BoxFuture<'_, Result<(), ClusterError>> {
        async move {
            let mut length = 0;
            while let Some(part) = file.next().await {
                length += part.map_err(|error| ClusterError::Failed(error.to_string()))?.len();
            }
            self.asked(format!("restore {length}")).await
        }
        .boxed()
    }
}

impl HistoryFiles for FakeServers {
    fn status(&self) -> HistoryStatus {
        HistoryStatus {
            retention: Retention { bytes: 1 << 30, age: Some(Duration::from_secs(90 * 24 * 3600)) },
            oldest: Index(1),
            log_oldest: Index(400),
            segments: 3,
            segment_bytes: 3 << 20,
            archive: Some(ArchiveStatus { files: 2, oldest: Some(Index(1)), ..ArchiveStatus::default() }),
            kept: None,
        }
    }

    fn verify(&self, of: Entries, index: Index) -> Result<Option<HistoryFile>, StoreError> {
        if of == Entries::Kept {
            return Ok(None);
        }
        let damaged = || StoreError::Damaged { file: "x.sjz".into(), offset: 128, why: "it is torn".into() };
        match index.0 {
            1 => Err(StoreError::Compacted { from: index, oldest: Index(3) }),
            2 => Err(damaged()),
            3..=9 => Ok(Some(HistoryFile {
                name: "a.sjz".into(),
                first: Index(3),
                last: Index(9),
                first_time: Time::from_secs(1),
                last_time: Time::from_secs(2),
                bytes: 100,
                raw_bytes: 500,
                begins: "3:a".into(),
                ends: "10:b".into(),
            })),
            _ => Ok(None),
        }
    }

    fn export(&self, of: Entries, index: Index) -> Result<Option<(HistoryFile, Vec<u8>)>, StoreError> {
        Ok(self.verify(of, index)?.map(|file| (file, b"bytes".to_vec())))
    }
}

impl Cluster {
    async fn put_nothing(&self, path: &str) -> crate::support::Got {
        self.send(request(Method::PUT, path, Body::empty())).await
    }
}

#[tokio::test]
async fn gossip_keys_are_listed_and_changed() {
    let cluster = Cluster::start().await;
    let listed = cluster.get("/v1/agent/keyring/list").await.json();
    let shown = json!({
        "Messages": {"two.global": "it did not answer"}, "Keys": {"a2V5": 1}, "NumNodes": 2,
    });
    assert_eq!(listed, shown);
    for change in ["install", "use", "remove"] {
        cluster.put(&format!("/v1/agent/keyring/{change}"), &json!({"Key": "a2V5"})).await.json();
    }
    let asked = [r#"List"#, r#"Install("a2V5")"#, r#"Use("a2V5")"#, r#"Remove("a2V5")"#];
    assert_eq!(cluster.servers.take(), asked);
    cluster.get("/v1/agent/keyring/other").await.refused(404, "resource not found");
    assert_eq!(cluster.get("/v1/agent/keyring/use").await.status, 405);
    let why = "two.global has not installed the key".to_string();
    *cluster.servers.refuse.lock() = Some(ClusterError::Failed(why.clone()));
    cluster.put("/v1/agent/keyring/use", &json!({"Key": "a2V5"})).await.refused(500, &why);
}

#[tokio::test]
async fn servers_are_joined_and_made_to_leave() {
    let cluster = Cluster::start().await;
    let joined = cluster.put_nothing("/v1/agent/join?address=a&address=b:1").await.json();
    assert_eq!(joined, json!({"num_joined": 1, "error": "no server answers at b"}));
    cluster.put_nothing("/v1/agent/join").await.refused(400, "missing address to join");
    let left = cluster.put_nothing("/v1/agent/force-leave?node=s2.global&prune=true").await;
    assert_eq!((left.status.as_u16(), left.text()), (200, ""));
    cluster.put_nothing("/v1/agent/force-leave").await.refused(400, "missing node to force leave");
    let wrong = cluster.put_nothing("/v1/agent/force-leave?node=a&prune=perhaps").await;
    wrong.refused(400, "invalid prune value");
    assert_eq!(cluster.servers.take(), ["join a b:1", "force-leave s2.global true"]);
    *cluster.servers.refuse.lock() = Some(ClusterError::Invalid("it is alive".to_string()));
    cluster.put_nothing("/v1/agent/force-leave?node=s2").await.refused(400, "it is alive");
}

#[tokio::test]
async fn an_agent_with_a_node_lists_its_servers() {
    let server = Cluster::start().await;
    server.get("/v1/agent/servers").await.refused(501, "Invalid method");
    server.put_nothing("/v1/agent/servers?address=a").await.refused(501, "Invalid method");
    let both = Cluster::start_with(|agent| agent.node = Some(node_id(1))).await;
    assert_eq!(both.get("/v1/agent/servers").await.json(), json!([LEADER]));
    assert_eq!(both.put_nothing("/v1/agent/servers?address=a&address=10.0.0.1:4647").await.status, 200);
    both.put_nothing("/v1/agent/servers").await.refused(400, "missing server addresses");
    let wrong = both.put_nothing("/v1/agent/servers?address=a:b").await;
    wrong.refused(400, "`address` \"a:b\": expected HOST or HOST:PORT");
}

#[tokio::test]
async fn an_upgrade_is_finished_once_every_server_has_the_release() {
    let cluster = Cluster::start().await;
    let newest = u64::from(model::EPOCH);
    let path = "/v1/operator/upgrade";
    let shown = cluster.get(path).await.json();
    assert_holds(&shown, &json!({"Epoch": newest, "Next": newest, "Finished": true, "Problems": []}));
    assert_eq!(shown["Servers"][1]["Version"], "9.9.9");
    let before = cluster.control.state().index;
    let again = cluster.put_nothing(path).await.json();
    assert_holds(&again, &json!({"Epoch": newest, "Raised": false}));
    assert_eq!(cluster.control.state().index, before, "a new cluster is there already");

    *cluster.servers.unhealthy.lock() = true;
    let mixed = cluster.get(path).await.json();
    let first = u64::from(model::FIRST_EPOCH);
    assert_holds(&mixed, &json!({"Epoch": newest, "Next": first, "Newest": newest, "Finished": false}));
    let why = format!("two at two:4647 is of release 9.9.9, which knows epoch {first} of {newest}");
    assert_eq!(mixed["Problems"], json!([why]));
    cluster.put_nothing(path).await.refused(409, &why);
}

#[tokio::test]
async fn the_raft_cluster_is_shown_and_changed() {
    let cluster = Cluster::start().await;
    let raft = cluster.get("/v1/operator/raft/configuration").await.json();
    assert_holds(&raft, &json!({"Index": 7, "Servers": [{"ID": "x", "Node": "one", "Leader": true}]}));
    assert_eq!(cluster.put_nothing("/v1/operator/raft/configuration").await.status, 405);

    assert_eq!(cluster.delete("/v1/operator/raft/peer?id=x").await.status, 200);
    assert_eq!(cluster.delete("/v1/operator/raft/peer?address=10.0.0.2:4647").await.status, 200);
    let moved = cluster.put_nothing("/v1/operator/raft/transfer-leadership?id=y").await.json();
    assert_holds(&moved, &json!({"Noop": false, "Err": null, "From": {"ID": ""}, "To": {"ID": ""}}));
    let asked = ["remove Id(\"x\")", "remove Address(\"10.0.0.2:4647\")", "transfer Id(\"y\")"];
    assert_eq!(cluster.servers.take(), asked);

    for (query, text) in [
        ("", "missing id or address of the server"),
        ("?id=", "id and address may not be empty"),
        ("?address=", "id and address may not be empty"),
        ("?id=a&address=b", "expected one id or one address, not several"),
        ("?id=a&id=b", "expected one id or one address, not several"),
    ] {
        cluster.delete(&format!("/v1/operator/raft/peer{query}")).await.refused(400, text);
        cluster
            .put_nothing(&format!("/v1/operator/raft/transfer-leadership{query}"))
            .await
            .refused(400, text);
    }
    cluster.put_nothing("/v1/operator/raft/peer?id=x").await.refused(404, "Invalid method");
    assert_eq!(cluster.servers.take(), [""; 0]);
    *cluster.servers.refuse.lock() = Some(ClusterError::NotLeading { leader: None });
    cluster.delete("/v1/operator/raft/peer?id=x").await.refused(500, "No cluster leader");
    *cluster.servers.refuse.lock() = Some(ClusterError::NotLeading { leader: Some("10.0.0.2:4647".into()) });
    cluster
        .delete("/v1/operator/raft/peer?id=x")
        .await
        .refused(500, "this server does not lead: 10.0.0.2:4647 does");
}

#[tokio::test]
async fn the_autopilots_configuration_is_set_against_what_was_seen() {
    let cluster = Cluster::start().await;
    let path = "/v1/operator/autopilot/configuration";
    let unset = cluster.get(path).await.json();
    let expected = json!({
        "CleanupDeadServers": true, "LastContactThreshold": "200ms", "MaxTrailingLogs": 250, "MinQuorum": 0,
        "ServerStabilizationTime": "10s", "EnableRedundancyZones": false, "DisableUpgradeMigration": false,
        "EnableCustomUpgrades": false, "CreateIndex": 0, "ModifyIndex": 0,
    });
    assert_eq!(unset, expected);
    let with = |field: &str, value: Value| {
        let mut wanted = unset.clone();
        wanted[field] = value;
        wanted
    };
    assert_eq!(
        cluster.put(&format!("{path}?cas=5"), &with("MinQuorum", json!(3))).await.json(),
        json!(false)
    );
    let set = cluster.put(&format!("{path}?cas=0"), &with("MinQuorum", json!(3))).await;
    assert_eq!(set.json(), json!(true));
    let now = cluster.get(path).await.json();
    assert_holds(&now, &json!({"MinQuorum": 3, "CreateIndex": set.index(), "ModifyIndex": set.index()}));
    let stale = cluster.put(&format!("{path}?cas=0"), &with("MinQuorum", json!(5))).await;
    assert_eq!(stale.json(), json!(false));
    assert_eq!(cluster.put(path, &with("ServerStabilizationTime", json!("1m0s"))).await.json(), json!(true));
    assert_eq!(cluster.get(path).await.json()["ServerStabilizationTime"], "1m0s");
    // It is in the log: a server that starts from it knows.
    assert_eq!(cluster.restarted().await.get(path).await.json()["ServerStabilizationTime"], "1m0s");

    for (field, value, text) in [
        ("LastContactThreshold", json!("soon"), "LastContactThreshold: expected a duration like 10s"),
        ("LastContactThreshold", json!("0s"), "LastContactThreshold: expected a duration above zero"),
        (
            "ServerStabilizationTime",
            json!("-1s"),
            "ServerStabilizationTime: expected a duration that is not negative",
        ),
        ("MinQuorum", json!(1000), "MinQuorum: expected a number of servers, at most 99"),
    ] {
        let refused = cluster.put(path, &with(field, value)).await;
        refused.refused(400, &format!("invalid autopilot configuration: {text}"));
    }
    let zones = cluster.put(path, &with("EnableRedundancyZones", json!(true))).await;
    zones.refused(400, "EnableRedundancyZones belongs to enterprise releases");
    let typed = cluster.put(path, &with("MaxTrailingLogs", json!("many"))).await;
    assert_eq!(typed.status, 400, "{}", typed.text());
    assert!(typed.text().contains("MaxTrailingLogs"), "{}", typed.text());
    cluster
        .put(&format!("{path}?cas=x"), &unset)
        .await
        .refused(400, "\"x\" is not a whole number, for `cas`");
    cluster.put(&format!("{path}?cas=-1"), &unset).await.refused(400, "cas: expected a modify index");
    let post = cluster.send(request(Method::POST, path, Body::from(unset.to_string()))).await;
    post.refused(404, "Invalid method");
}

#[tokio::test]
async fn health_is_an_answer_also_when_it_is_bad() {
    let cluster = Cluster::start().await;
    let health = cluster.get("/v1/operator/autopilot/health").await.json();
    assert_holds(
        &health,
        &json!({"Healthy": true, "Servers": [{"ID": "x", "LastContact": "20ms"}], "Voters": null}),
    );
    *cluster.servers.unhealthy.lock() = true;
    let ill = cluster.get("/v1/operator/autopilot/health").await;
    assert_eq!(ill.status, 429);
    let body: Value = serde_json::from_slice(&ill.body).unwrap();
    assert_holds(&body, &json!({"Healthy": false, "Servers": [{"ID": "x"}]}));
}

#[tokio::test]
async fn a_snapshot_is_a_file_with_a_digest() {
    let cluster = Cluster::start().await;
    let file = cluster.get("/v1/operator/snapshot").await;
    assert_eq!((file.status.as_u16(), file.text()), (200, "one two"));
    assert_eq!((file.header("digest"), file.header("content-length")), ("sha-256=abc", "7"));
    assert_eq!((file.index(), file.header("content-type")), (42, "application/octet-stream"));
    // Larger than any other body may be.
    let large = Body::from_stream(stream::iter(
        (0..40).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![7; 1 << 20]))),
    ));
    let restored = cluster.send(request(Method::PUT, "/v1/operator/snapshot", large)).await;
    assert_eq!((restored.status.as_u16(), restored.text()), (200, ""));
    assert_eq!(cluster.servers.take(), ["save", &format!("restore {}", 40 << 20)]);
    *cluster.servers.refuse.lock() = Some(ClusterError::Failed("the file is damaged".to_string()));
    cluster.put_nothing("/v1/operator/snapshot").await.refused(500, "the file is damaged");
    cluster.get("/v1/operator/snapshot").await.refused(500, "the file is damaged");
}

#[tokio::test]
async fn history_is_shown_verified_and_exported_file_by_file() {
    let cluster = Cluster::start().await;
    let shown = cluster.get("/v1/operator/history").await.json();
    assert_eq!(shown["Server"], "one");
    assert_eq!((&shown["OldestIndex"], &shown["LogOldestIndex"]), (&json!(1), &json!(400)));
    assert_eq!((&shown["MinAge"], &shown["MaxBytes"]), (&json!("2160h0m0s"), &json!(1 << 30)));
    assert!(shown["OldestTime"].is_string() && shown["NewestIndex"].as_u64() >= Some(1), "{shown}");
    assert_eq!((&shown["Archive"]["Files"], &shown["Archive"]["MaxBytes"]), (&json!(2), &json!(null)));
    assert_eq!(shown["Dropped"], json!(null));
    cluster.submit(Command::RaiseEpoch { epoch: model::EPOCH }).await;
    let command =
        Command::NoteDroppedHistory { server: "two".into(), oldest: Index(300), time: Time(1_000_000_000) };
    let noted = cluster.submit(command).await.index.0;
    let said =
        json!({"Server": "two", "OldestIndex": 300, "OldestTime": "1970-01-01T00:00:01Z", "Index": noted});
    assert_eq!(cluster.get("/v1/operator/history").await.json()["Dropped"], json!([said]));
    let file = cluster.get("/v1/operator/history/verify?from=5").await.json();
    let expected = json!({
        "Name": "a.sjz", "FirstIndex": 3, "LastIndex": 9, "FirstTime": "1970-01-01T00:00:01Z",
        "LastTime": "1970-01-01T00:00:02Z", "Bytes": 100, "RawBytes": 500, "Begins": "3:a", "Ends": "10:b",
    });
    assert_eq!(file, expected);
    let exported = cluster.get("/v1/operator/history/export?from=5").await;
    assert_eq!((exported.header("x-sojourn-next-index"), &exported.body[..]), ("10", &b"bytes"[..]));
    for route in ["verify", "export"] {
        let kept = cluster.get(&format!("/v1/operator/history/{route}?from=5&kept=true")).await;
        kept.refused(404, "no facts are kept of index 5, or of later ones");
        let get = async |from: &str| cluster.get(&format!("/v1/operator/history/{route}{from}")).await;
        for wrong in ["", "?from=0", "?from=-1"] {
            get(wrong).await.refused(400, "from: expected an index, at least 1");
        }
        get("?from=1").await.refused(410, "batch 1 is no longer kept: the oldest is 3");
        get("?from=2")
            .await
            .refused(500, "the log is damaged in archived file x.sjz at byte 128: it is torn");
        let newest = cluster.control.state().index;
        let beyond = format!("index 99 is not committed here: the newest is {newest}");
        get("?from=99").await.refused(404, &beyond);
    }
}

#[tokio::test]
async fn history_is_shown_to_operators_and_exported_for_management() {
    let guarded = Guarded::start().await;
    let reader = guarded.caller("reader", r#"operator { policy = "read" }"#).await;
    let writer = guarded.caller("writer", r#"operator { policy = "write" }"#).await;
    let developer = guarded.caller("developer", r#"namespace "default" { policy = "write" }"#).await;
    let root = guarded.root.clone();
    for path in ["/v1/operator/history", "/v1/operator/history/verify?from=5"] {
        for (token, status) in
            [(NOBODY, 403), (&developer, 403), (&reader, 200), (&writer, 200), (&root, 200)]
        {
            assert_eq!(guarded.get(token, path).await.status, status, "{path}");
        }
    }
    for (token, status) in [(NOBODY, 403), (&developer, 403), (&reader, 403), (&writer, 403), (&root, 200)] {
        assert_eq!(guarded.get(token, "/v1/operator/history/export?from=5").await.status, status);
    }
}

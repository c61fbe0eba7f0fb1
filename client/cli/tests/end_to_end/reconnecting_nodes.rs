//! Nodes disconnect and reconnect, with their first reports in every order.

use std::time::Duration;

use serde_json::{Value, json};

use crate::end_to_end::support::fake_node::{FakeNode, Heartbeats};
use crate::end_to_end::support::{Agent, AgentConfig, SOON_LOST, eventually, http, job, text, until};

/// What the reconnecting node sends first.
#[derive(Clone, Copy, Debug)]
enum First {
    Beats,
    Reports,
    Registers,
}

/// All cases run at the same time: the timeouts of the servers are long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_cut_off_keeps_its_work_whatever_it_says_first() {
    let directory = tempfile::tempdir().unwrap();
    let server = AgentConfig::server(directory.path(), "server").with(SOON_LOST).start();
    let mut cases = Vec::new();
    for first in [First::Beats, First::Reports, First::Registers] {
        cases.push(Case::start(&server, first, "keep_original").await);
    }
    for strategy in ["keep_replacement", "best_score", "longest_running"] {
        cases.push(Case::start(&server, First::Beats, strategy).await);
    }
    for case in &mut cases {
        case.silent_beats.take();
    }
    for case in &mut cases {
        case.be_replaced(&server).await;
    }
    for case in &cases {
        case.come_back(&server).await;
    }
    for case in &cases {
        case.settle(&server).await;
    }
}

/// A node that waits for news of its allocations gets none because those of others changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_on_other_nodes_is_no_news_for_a_node() {
    let directory = tempfile::tempdir().unwrap();
    let server = AgentConfig::server(directory.path(), "server").start();
    let (one, two) = (connect(&server, "one").await, connect(&server, "two").await);
    let _beats = (one.keep_sending_heartbeats(), two.keep_sending_heartbeats());
    server.register(&reconnecting("here", "one"));
    eventually("the job is placed", || server.allocs("here").first().cloned());
    let (seen, allocs) = one.assigned_after(0, Duration::ZERO).await;
    assert_eq!(allocs.len(), 1);
    server.register(&reconnecting("there", "two"));
    let other = eventually("the other job is placed", || server.allocs("there").first().cloned());
    two.report(&text(&other["ID"]), "running").await.unwrap();
    let (index, _) = one.assigned_after(seen, Duration::from_millis(300)).await;
    assert!(index <= seen, "{index} is news, and {seen} was known");
    one.report(allocs.keys().next().unwrap(), "running").await.unwrap();
    let (index, _) = one.assigned_after(seen, Duration::from_secs(60)).await;
    assert!(index > seen, "{index} is the node's own report, later than {seen}");
}

/// A job with two nodes of its own.
struct Case {
    first: First,
    strategy: &'static str,
    job: String,
    /// The node of the original allocation.
    node: FakeNode,
    other: FakeNode,
    /// Until the node disconnects.
    silent_beats: Option<Heartbeats>,
    _other_beats: Heartbeats,
    original: String,
    replacement: String,
}

impl Case {
    async fn start(server: &Agent, first: First, strategy: &'static str) -> Case {
        let datacenter = format!("{first:?}-{strategy}").to_lowercase();
        let job = format!("first-{datacenter}");
        let one = connect(server, &datacenter).await;
        let two = connect(server, &datacenter).await;
        let (one_beats, two_beats) = (one.keep_sending_heartbeats(), two.keep_sending_heartbeats());
        let mut document = reconnecting(&job, &datacenter);
        document["TaskGroups"][0]["Disconnect"]["Reconcile"] = json!(strategy);
        server.register(&document);
        let alloc = eventually("the job is placed", || server.allocs(&job).first().cloned());
        let original = text(&alloc["ID"]);
        let (node, beats, other, other_beats) = match alloc["NodeID"] == one.id() {
            true => (one, one_beats, two, two_beats),
            false => (two, two_beats, one, one_beats),
        };
        assert!(node.assigned().await.contains_key(&original));
        node.report(&original, "running").await.unwrap();
        assert_eq!(client_status(server, &original), "running");
        let (silent_beats, _other_beats) = (Some(beats), other_beats);
        let replacement = String::new();
        Case { first, strategy, job, node, other, silent_beats, _other_beats, original, replacement }
    }

    async fn be_replaced(&mut self, server: &Agent) {
        until("the silence is noticed", || status(server, &self.node) == "disconnected");
        until("its status is unknown", || client_status(server, &self.original) == "unknown");
        self.replacement = eventually("another takes its place", || {
            let ids = server.allocs(&self.job).into_iter().map(|alloc| text(&alloc["ID"]));
            ids.into_iter().find(|id| *id != self.original)
        });
        assert_eq!(alloc(server, &self.replacement)["NodeID"], self.other.id());
        self.other.report(&self.replacement, "running").await.unwrap();
    }

    /// In every order: the node is ready only after it has reported its allocations.
    async fn come_back(&self, server: &Agent) {
        let (node, first) = (&self.node, self.first);
        match first {
            First::Beats => {}
            First::Reports => {
                let before = alloc(server, &self.original);
                let refused = node.report(&self.original, "running").await.unwrap_err().to_string();
                assert!(refused.contains("disconnected"), "{refused}");
                assert_eq!(alloc(server, &self.original), before, "nothing was written");
                assert_eq!(status(server, node), "disconnected");
            }
            First::Registers => {
                node.register().await.unwrap();
                assert_eq!(status(server, node), "disconnected", "registering is no sign of life");
            }
        }
        for _ in 0..2 {
            node.heartbeat().await.unwrap();
            // Once its allocation is to stop it has none that it must report.
            if self.strategy == "keep_original" {
                assert_eq!(status(server, node), "initializing", "{first:?}: however often it asks");
            }
        }
        node.report(&self.original, "running").await.unwrap();
        assert_eq!(client_status(server, &self.original), "running");
        node.heartbeat().await.unwrap();
        assert_eq!(status(server, node), "ready", "{first:?}");
    }

    /// The job keeps one of the two, and the history of each says which, and why.
    async fn settle(&self, server: &Agent) {
        let _beats = self.node.keep_sending_heartbeats();
        let goes = |id: &str| alloc(server, id)["DesiredStatus"] == "stop";
        let both = [&self.original, &self.replacement];
        let gone = eventually("one of the two is to stop", || both.into_iter().find(|id| goes(id)));
        let keeps_original = *gone == self.replacement;
        match self.strategy {
            "keep_original" => assert!(keeps_original),
            "keep_replacement" => assert!(!keeps_original),
            _ => {}
        }
        let (kept, node) = match keeps_original {
            true => (&self.original, &self.other),
            false => (&self.replacement, &self.node),
        };
        node.report(gone, "complete").await.unwrap();
        assert_eq!(client_status(server, kept), "running");
        assert_eq!(alloc(server, kept)["DesiredStatus"], "run");
        assert_eq!(server.allocs(&self.job).len(), 2, "{:?}: nothing else was placed", self.first);
        let history = server.run(&["history", "alloc", &self.original]).expect_success();
        assert_eq!(history.matches("running -> unknown").count(), 1, "{history}");
        assert_eq!(history.matches("unknown -> running").count(), 1, "{history}");
        let told = if keeps_original { "the original stays" } else { "the replacement stays" };
        assert!(
            history.contains(&format!("({}; scores ", self.strategy)) && history.contains(told),
            "{history}"
        );
        self.is_explained(server, &self.original, keeps_original);
        if keeps_original {
            self.is_explained(server, &self.replacement, keeps_original);
        }
        let stopped = http::delete(server.config.http, &format!("/v1/job/{}", self.job)).unwrap();
        assert_eq!(stopped.status, 200, "{}", stopped.body);
        until("the other one is to stop", || goes(kept));
    }

    fn is_explained(&self, server: &Agent, id: &str, keeps_original: bool) {
        let history = server.get(&format!("/v1/allocation/{id}/history"));
        let transitions = history["Transitions"].as_array().unwrap();
        let choices: Vec<&Value> =
            transitions.iter().map(|one| &one["Reconnect"]).filter(|choice| !choice.is_null()).collect();
        let [choice] = &choices[..] else { panic!("{id}: {history}") };
        assert_eq!(choice["Strategy"], self.strategy);
        assert_eq!(
            (&choice["Original"], &choice["Replacement"]),
            (&json!(self.original), &json!(self.replacement))
        );
        assert_eq!(choice["KeepsOriginal"], keeps_original, "{choice}");
        assert!(choice["OriginalScore"].is_number() && choice["ReplacementScore"].is_number(), "{choice}");
    }
}

async fn connect(server: &Agent, datacenter: &str) -> FakeNode {
    let node = FakeNode::connect(server.config.rpc, datacenter).await;
    node.register().await.unwrap();
    node.heartbeat().await.unwrap();
    assert_eq!(status(server, &node), "ready");
    node
}

fn reconnecting(id: &str, datacenter: &str) -> Value {
    let mut job = job(id, json!({"command": "/bin/true"}));
    let seconds = |seconds: u64| seconds * 1_000_000_000;
    job["Datacenters"] = json!([datacenter]);
    // No deployment: what is part of one that still runs is not replaced.
    job["Update"] = json!({"MaxParallel": 0});
    let group = &mut job["TaskGroups"][0];
    group["Disconnect"] = json!({"LostAfter": seconds(3600), "Replace": true, "Reconcile": "keep_original"});
    // The shortest allowed value: a replacement waits for it too.
    group["ReschedulePolicy"] =
        json!({"Delay": seconds(5), "DelayFunction": "constant", "MaxDelay": seconds(5), "Unlimited": true});
    job
}

fn status(server: &Agent, node: &FakeNode) -> String {
    text(&server.get(&format!("/v1/node/{}", node.id()))["Status"])
}

fn alloc(server: &Agent, id: &str) -> Value {
    server.get(&format!("/v1/allocation/{id}"))
}

fn client_status(server: &Agent, id: &str) -> String {
    text(&alloc(server, id)["ClientStatus"])
}

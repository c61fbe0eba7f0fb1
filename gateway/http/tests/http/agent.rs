use api::HostDataResponse;
use model::Command;
use serde_json::json;
use wire::messages::{HostDataRequest, method};

use crate::support::{Cluster, assert_holds, node_id};

#[tokio::test]
async fn the_agent_shows_what_clients_look_for() {
    let cluster = Cluster::start_with(|agent| agent.node = Some(node_id(1))).await;
    let own = cluster.get("/v1/agent/self").await.json();
    let expected = json!({
        "config": {"Name": "one", "Region": "global", "Datacenter": "dc1", "ACL": {"Enabled": false},
                   "Version": {"Version": "2.0.0", "VersionPrerelease": ""}},
        "member": {"Name": "one.global", "Addr": "10.0.0.9", "Port": 4648, "Status": "alive"},
        "stats": {"client": {"node_id": node_id(1).to_string()},
                  "nomad": {"server": "true", "leader": "true", "leader_addr": "10.0.0.9:4647"}},
    });
    assert_holds(&own, &expected);
    let members = cluster.get("/v1/agent/members").await.json();
    assert_holds(
        &members,
        &json!({"ServerName": "one", "ServerRegion": "global", "ServerDC": "dc1",
                "Members": [{"Tags": {"role": "nomad", "region": "global", "port": "4647"}}]}),
    );
    assert_eq!(cluster.get("/v1/status/leader").await.json(), json!("10.0.0.9:4647"));
    assert_eq!(cluster.get("/v1/status/peers").await.json(), json!(["10.0.0.9:4647"]));
    assert_eq!(cluster.get("/v1/regions").await.json(), json!(["global"]));
}

#[tokio::test]
async fn an_agent_is_healthy_when_what_is_asked_for_is() {
    let cluster = Cluster::start().await;
    let health = cluster.get("/v1/agent/health").await.json();
    assert_eq!(health, json!({"server": {"ok": true, "message": "ok"}}));
    let absent = cluster.get("/v1/agent/health?type=client").await;
    absent.refused(500, r#"{"client":{"ok":false,"message":"client not enabled"}}"#);
    cluster.journal.depose(true);
    let mut leads = cluster.control.leadership();
    leads.wait_for(|leads| *leads == control::Leadership::Unknown).await.unwrap();
    let leaderless = cluster.get("/v1/agent/health?type=server&stale").await;
    leaderless.refused(500, r#"{"server":{"ok":false,"message":"No cluster leader"}}"#);
}

#[tokio::test]
async fn metrics_come_as_numbers_and_as_text() {
    let cluster = Cluster::start().await;
    cluster.node(1).await;
    cluster.job("web").await;
    let summary = cluster.get("/v1/metrics").await.json();
    assert!(summary["Timestamp"].as_str().unwrap().ends_with(" +0000 UTC"), "{summary}");
    assert_eq!(summary["Points"], json!([]));
    for (list, name) in [
        ("Counters", "sojourn.http.requests_total"),
        ("Counters", "nomad.raft.apply"),
        ("Samples", "sojourn.http.request_time"),
        ("Samples", "nomad.nomad.plan.apply"),
    ] {
        assert!(summary[list].as_array().unwrap().iter().any(|one| one["Name"] == name), "{name}");
    }
    let gauges = summary["Gauges"].as_array().unwrap();
    let value = |name: &str| gauges.iter().find(|g| g["Name"] == name).map(|g| g["Value"].clone());
    assert_eq!(value("nomad.nomad.broker.total_ready"), Some(json!(1.0)));
    assert_eq!(value("nomad.nomad.job_status.pending"), Some(json!(1.0)));
    let positive = |name: &str| value(name).and_then(|value| value.as_f64()).is_some_and(|value| value > 0.0);
    assert!(
        positive("nomad.runtime.sys_bytes") && value("nomad.runtime.num_goroutines").is_some(),
        "{summary}"
    );

    let text = cluster.get("/v1/metrics?format=prometheus").await;
    assert_eq!(text.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    for line in [
        "# TYPE nomad_nomad_broker_total_ready gauge\nnomad_nomad_broker_total_ready{host=\"one\"} 1\n",
        "nomad_nomad_broker_service_ready{host=\"one\"} 1\n",
        "sojourn_nodes{status=\"ready\",host=\"one\"} 1\n",
        "nomad_nomad_job_summary_running{job=\"web\",namespace=\"default\",task_group=\"web\",host=\"one\"} 0\n",
        "# TYPE nomad_raft_apply counter\n",
        "# TYPE nomad_raft_commitTime summary\n",
        "# TYPE nomad_nomad_plan_evaluate summary\n",
        "# TYPE nomad_raft_fsm_apply summary\n",
        "nomad_raft_peers{host=\"one\"} 1\n",
        "nomad_autopilot_healthy{host=\"one\"} 1\n",
        "nomad_raft_leader_lastContact_sum{host=\"one\"} 7\n",
        "# TYPE sojourn_raft_messages_dropped_total counter\nsojourn_raft_messages_dropped_total{host=\"one\"} 3\n",
        "nomad_nomad_blocked_evals_total_escaped{host=\"one\"} 0\n",
    ] {
        assert!(text.text().contains(line), "{line} in {}", text.text());
    }
    // What the node in the same process says stands beside it.
    cluster.node_figures.come_from(std::time::Duration::ZERO, || {
        let gauges = vec![metrics::Gauge::new("nomad.client.uptime", 7).with("node_id", "x")];
        Box::pin(async { metrics::Figures { gauges, ..Default::default() } })
    });
    let text = cluster.get("/v1/metrics?format=prometheus").await;
    assert!(text.text().contains("nomad_client_uptime{node_id=\"x\",host=\"one\"} 7\n"));
    let without = Cluster::start_with(|agent| (agent.prometheus, agent.metrics_host) = (false, false)).await;
    assert_eq!(without.get("/v1/metrics").await.json()["Gauges"][0]["Labels"], json!({}));
    without.get("/v1/metrics?format=prometheus").await.refused(415, "Prometheus is not enabled");
}

#[tokio::test]
async fn nodes_that_fall_silent_and_plans_that_they_reject_are_counted() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let miss = || Command::MissHeartbeat { node };
    cluster.submit(miss()).await;
    assert!(!cluster.submit(miss()).await.wrote, "it is down already");
    let eval = cluster.job("web").await;
    assert_eq!(cluster.try_place(eval, "web", node, 1).await.1.rejected.len(), 1);
    let text = cluster.get("/v1/metrics?format=prometheus").await;
    for line in [
        "nomad_nomad_heartbeat_invalidate_count{host=\"one\"} 1\n".to_string(),
        format!("nomad_nomad_plan_node_rejected{{node_id=\"{node}\",host=\"one\"}} 1\n"),
    ] {
        assert!(text.text().contains(&line), "{line} in {}", text.text());
    }
}

#[tokio::test]
async fn the_host_is_shown_where_that_is_allowed() {
    let cluster = Cluster::start().await;
    cluster.get("/v1/agent/host").await.refused(403, "Permission denied");
    let open = Cluster::start_with(|agent| agent.debug = true).await;
    let host = open.get("/v1/agent/host?server_id=one").await.json();
    assert!(host["HostData"]["OS"].as_str().unwrap().starts_with("Linux"), "{host}");
    assert!(host["HostData"]["Disk"]["/"]["DiskMB"].as_i64().unwrap() > 0, "{host}");
    assert!(host["HostData"]["Environment"].is_object() && host["HostData"]["Network"].is_array(), "{host}");
    assert_ne!(host["AgentID"], "");
    let both = open.get("/v1/agent/host?server_id=a&node_id=b").await;
    both.refused(400, "Cannot target node and server simultaneously");
}

#[tokio::test]
async fn the_host_of_another_agent_comes_from_there() {
    // Whether it may be shown is for that agent to say.
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let host = HostDataResponse { agent_id: "other".to_string(), ..Default::default() };
    cluster.nodes.answers(method::AGENT_HOST, &host);
    let answer = cluster.get(&format!("/v1/agent/host?node_id={node}")).await.json();
    assert_eq!(answer["AgentID"], "other");
    let (of, _, request): (_, _, HostDataRequest) = cluster.nodes.last();
    assert_eq!((of, request.node_id), (node, node.to_string()));

    let answer = cluster.get("/v1/agent/host?server_id=two").await.json();
    assert_eq!(answer["AgentID"], "other");
    assert_eq!(cluster.nodes.server_asked.lock().take().unwrap(), "10.0.0.8:4647");
    cluster.nodes.refuses(method::AGENT_HOST, "RPC Error:: 403,Permission denied");
    cluster.get("/v1/agent/host?server_id=two").await.refused(403, "Permission denied");
    cluster.get("/v1/agent/host?server_id=none").await.refused(404, "unknown Nomad server none");
    let pprof = cluster.get("/v1/agent/pprof/profile").await;
    assert_eq!(pprof.status, 501);
    assert!(pprof.text().contains("use a profiler of the operating system, like perf"), "{}", pprof.text());
}

#[tokio::test]
async fn there_is_one_namespace_and_no_access_control() {
    let cluster = Cluster::start().await;
    assert_holds(&cluster.get("/v1/namespaces").await.json(), &json!([{"Name": "default"}]));
    assert_eq!(cluster.get("/v1/namespaces?prefix=x").await.json(), json!([]));
    assert_eq!(cluster.get("/v1/namespace/default").await.json()["Name"], "default");
    cluster.get("/v1/namespace/x").await.refused(404, "Namespace not found");
    cluster.get("/v1/acl/policies").await.refused(400, "ACL support disabled");
    assert_eq!(cluster.get("/v1/acl/token/self").await.json()["AccessorID"], "acls-disabled");
    assert_eq!(cluster.get("/v1/operator/license").await.status, 204);
    cluster.put("/v1/operator/license", &json!({})).await.refused(501, "Nomad Enterprise only endpoint");
    let scheduler = cluster.get("/v1/operator/scheduler/configuration").await.json();
    assert_holds(
        &scheduler,
        &json!({"SchedulerConfig": {"SchedulerAlgorithm": "binpack"}, "KnownLeader": true}),
    );
}

#[tokio::test]
async fn what_is_not_built_is_rejected_by_name() {
    let cluster = Cluster::start().await;
    cluster.get("/v1/quotas").await.refused(501, "Nomad Enterprise only endpoint");
}

#[tokio::test]
async fn lists_of_what_is_not_built_are_empty() {
    let cluster = Cluster::start().await;
    for path in ["/v1/vars", "/v1/volumes?type=host", "/v1/volumes/claims", "/v1/plugins?type=csi"] {
        let got = cluster.get(path).await;
        assert_eq!((got.json(), got.index()), (json!([]), 1), "{path}");
    }
    // A reader that waits for news waits.
    let began = std::time::Instant::now();
    assert_eq!(cluster.get("/v1/vars?index=1&wait=300ms").await.json(), json!([]));
    assert!(began.elapsed() >= std::time::Duration::from_millis(300));
    cluster.get("/v1/var/nomad/jobs/web").await.refused(404, "variable not found");
    cluster.get("/v1/volume/csi/db").await.refused(404, "volume not found");
    cluster.get("/v1/volume/host/db").await.refused(404, "volume not found");
    cluster.get("/v1/plugin/csi/ebs").await.refused(404, "plugin not found");
    cluster.get("/v1/volumes?type=tape").await.refused(404, "resource not found");
    let discovery = cluster.get("/.well-known/openid-configuration").await;
    discovery.refused(404, "OIDC Discovery endpoint disabled");
}

#[tokio::test]
async fn names_are_found_by_their_start() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    for n in 0..25 {
        cluster.job(&format!("web-{n:02}")).await;
    }
    let found = cluster.put("/v1/search", &json!({"Prefix": "web", "Context": "all"})).await.json();
    assert_eq!(found["Matches"]["jobs"].as_array().unwrap().len(), 20);
    assert_eq!(found["Matches"]["jobs"][19], "web-19");
    assert_holds(&found, &json!({"Truncations": {"jobs": true, "nodes": false}, "Matches": {"nodes": null}}));
    let odd = json!({"Prefix": &node.to_string()[..7], "Context": "nodes"});
    let found = cluster.put("/v1/search", &odd).await.json();
    assert_eq!(found["Matches"], json!({"nodes": [node.to_string()]}));
    let quotas = cluster.put("/v1/search", &json!({"Prefix": "a", "Context": "quotas"})).await;
    quotas.refused(501, "searching for \"quotas\" is not supported by this release");
}

#[tokio::test]
async fn the_workers_of_a_server_are_replaced() {
    let cluster = Cluster::start().await;
    let path = "/v1/agent/schedulers/config";
    let config = cluster.get(path).await.json();
    assert_holds(
        &config,
        &json!({"enabled_schedulers": ["service", "batch", "system", "sysbatch", "_core"]}),
    );
    for wrong in [
        json!({"num_schedulers": -1, "enabled_schedulers": ["_core"]}),
        json!({"num_schedulers": 1_025, "enabled_schedulers": ["_core"]}),
        json!({"num_schedulers": 1, "enabled_schedulers": ["service"]}),
        json!({"num_schedulers": 1, "enabled_schedulers": ["_core", "cron"]}),
    ] {
        cluster.put(path, &wrong).await.refused(400, "Invalid request");
    }
    assert_eq!(cluster.get(path).await.json(), config);
    let wanted = json!({"num_schedulers": 2, "enabled_schedulers": ["_core", "batch"]});
    assert_holds(&cluster.put(path, &wanted).await.json(), &json!({"num_schedulers": 2}));
    let workers = cluster.get("/v1/agent/schedulers").await.json()["schedulers"].clone();
    assert_holds(&workers, &json!([{"enabled_schedulers": ["batch", "_core"]}, {}]));

    let service = cluster.job("web").await;
    let batch = json!({"Job": {"ID": "sum", "Type": "batch", "Datacenters": ["dc1"], "TaskGroups": [
        {"Name": "g", "Tasks": [{"Name": "t", "Driver": "raw_exec", "Config": {"command": "/bin/true"}}]}]}});
    let eval = cluster.put("/v1/jobs", &batch).await.json()["EvalID"].as_str().unwrap().to_string();
    let status = async |id: &str| cluster.get(&format!("/v1/evaluation/{id}")).await.json()["Status"].clone();
    // Nothing fits anywhere, so what was scheduled is complete, and something else waits.
    let scheduled = async {
        while status(&eval).await != "complete" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), scheduled).await.expect("a worker takes it");
    assert_eq!(status(&service.to_string()).await, "pending", "no worker is there for services");
}

#[tokio::test]
async fn what_keeps_a_configuration_from_being_read_again_is_said() {
    let cluster = Cluster::start().await;
    let why = "this agent has no configuration to read again";
    cluster.put("/v1/agent/reload", &json!(null)).await.refused(500, why);
    assert_eq!(cluster.get("/v1/agent/reload").await.status, 405);
}

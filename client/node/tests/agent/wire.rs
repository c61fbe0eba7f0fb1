//! An agent and its servers over the real wire: calls in both directions.

use crate::support::listening::{SOON, running};
use crate::support::*;
use api::{AllocFileInfo, AllocResourceUsage, HostDataResponse, HostStats, StreamFrame};
use serde_json::json;
use wire::messages::{
    AllocGetPauseResponse, AllocPauseRequest, AllocRestartRequest, AllocSpecificRequest, AllocStatsRequest,
    AllocStatsResponse, ClientStatsResponse, Empty, FsListResponse, FsLogsRequest, FsPathRequest,
    FsStreamRequest, GenericResponse, HostDataRequest, NodeMetaApplyRequest, NodeMetaResponse,
    StreamFrameWrapper, method,
};

#[tokio::test(flavor = "multi_thread")]
async fn an_allocation_runs_over_the_wire_and_its_files_are_served() {
    let running = running().await;
    running.servers.assign(alloc(
        1,
        "batch",
        json!([shell("web", "echo hello; echo 12345 > $NOMAD_TASK_DIR/f")]),
    ));
    running.servers.await_status(&alloc_id(1), "complete");
    let connection = running.connection().await;

    let list = FsPathRequest { alloc_id: alloc_id(1), path: "/alloc/logs".into(), ..Default::default() };
    let listed: FsListResponse<AllocFileInfo> =
        connection.call(method::FILE_SYSTEM_LIST, &list, SOON).await.unwrap();
    let names: Vec<&str> = listed.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["web.stderr.0", "web.stdout.0"]);

    let logs = FsLogsRequest {
        alloc_id: alloc_id(1),
        task: "web".into(),
        log_type: "stdout".into(),
        ..Default::default()
    };
    let (payloads, failure) = running.payloads(method::FILE_SYSTEM_LOGS, &logs).await;
    assert_eq!(failure, None);
    let frame: StreamFrame = serde_json::from_slice(&payloads[0]).unwrap();
    assert_eq!((frame.data.0.as_slice(), frame.file.as_str()), (&b"hello\n"[..], "alloc/logs/web.stdout.0"));

    let file = FsStreamRequest {
        alloc_id: alloc_id(1),
        path: "web/local/f".into(),
        offset: 2,
        limit: 3,
        plain_text: true,
        ..Default::default()
    };
    assert_eq!(running.payloads(method::FILE_SYSTEM_STREAM, &file).await, (vec![b"345".to_vec()], None));
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_carry_their_status() {
    let running = running().await;
    running.servers.assign(alloc(1, "batch", json!([shell("web", "true")])));
    running.servers.await_status(&alloc_id(1), "complete");
    let connection = running.connection().await;
    let list = FsPathRequest { alloc_id: alloc_id(1), path: "../x".into(), ..Default::default() };
    let escaped =
        connection.call::<_, FsListResponse<AllocFileInfo>>(method::FILE_SYSTEM_LIST, &list, SOON).await;
    assert_eq!(escaped.unwrap_err().to_string(), "RPC Error:: 400,Path escapes the alloc directory");
    let unknown = AllocSpecificRequest { alloc_id: alloc_id(9), ..Default::default() };
    let gone =
        connection.call::<_, GenericResponse>(method::ALLOCATIONS_GARBAGE_COLLECT, &unknown, SOON).await;
    assert_eq!(gone.unwrap_err().to_string(), format!("Unknown allocation \"{}\"", alloc_id(9)));
    let logs = |task: &str| FsLogsRequest {
        alloc_id: alloc_id(1),
        task: task.into(),
        log_type: "stdout".into(),
        ..Default::default()
    };
    let (_, failure) = running.payloads(method::FILE_SYSTEM_LOGS, &logs("db")).await;
    assert_eq!(failure, Some((400, "unknown task name \"db\"".to_string())));
    let odd = connection.open_stream("Allocations.Frob", SOON).await.err().unwrap();
    assert!(odd.to_string().contains("unknown rpc method"));
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_followed_log_grows_and_beats_until_the_reader_leaves() {
    let running = running().await;
    let script = "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two; sleep 1000";
    running.servers.assign(alloc(1, "service", json!([shell("web", script)])));
    running.servers.await_status(&alloc_id(1), "running");
    let logs = FsLogsRequest {
        alloc_id: alloc_id(1),
        task: "web".into(),
        log_type: "stdout".into(),
        follow: true,
        ..Default::default()
    };
    let mut frames = running.connection().await.open_stream(method::FILE_SYSTEM_LOGS, SOON).await.unwrap();
    frames.send(&logs).await.unwrap();
    let mut seen = Vec::new();
    let mut beats = 0;
    while !seen.ends_with(b"two\n") {
        let wrapper: StreamFrameWrapper = frames.receive().await.unwrap().unwrap();
        if wrapper == StreamFrameWrapper::default() {
            // The log is open.
            continue;
        }
        let frame: StreamFrame = serde_json::from_slice(&wrapper.payload.0).unwrap();
        if frame == StreamFrame::default() {
            beats += 1;
            std::fs::write(running.base.path().join("alloc").join(alloc_id(1)).join("web/go"), "").unwrap();
        }
        seen.extend(frame.data.0);
    }
    assert_eq!(seen, b"one\ntwo\n");
    assert!(beats >= 1);
    drop(frames);
    running.servers.stop(&alloc_id(1));
    running.servers.await_status(&alloc_id(1), "complete");
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_restarted_and_measured_and_collected_on_request() {
    let running = running().await;
    running.servers.assign(alloc(1, "service", json!([shell("web", "while :; do :; done")])));
    running.servers.await_status(&alloc_id(1), "running");
    let connection = running.connection().await;

    let ask = AllocStatsRequest { alloc_id: alloc_id(1), ..Default::default() };
    let stats: AllocStatsResponse<AllocResourceUsage> =
        connection.call(method::ALLOCATIONS_STATS, &ask, SOON).await.unwrap();
    let usage = stats.stats.unwrap().tasks["web"].resource_usage.clone().unwrap();
    assert!(usage.cpu_stats.unwrap().percent > 1.0, "it is busy");
    assert!(usage.memory_stats.unwrap().rss > 0);
    let host: ClientStatsResponse<HostStats> =
        connection.call(method::CLIENT_STATS, &Empty {}, SOON).await.unwrap();
    assert!(host.host_stats.unwrap().memory.unwrap().total > 0);
    let host: HostDataResponse =
        connection.call(method::AGENT_HOST, &HostDataRequest::default(), SOON).await.unwrap();
    assert!(host.host_data.unwrap().os.starts_with("Linux") && !host.agent_id.is_empty());

    let restart = AllocRestartRequest { alloc_id: alloc_id(1), ..Default::default() };
    let _: GenericResponse = connection.call(method::ALLOCATIONS_RESTART, &restart, SOON).await.unwrap();
    running.servers.await_task(&alloc_id(1), "web", |task| task.restarts == 1 && task.state == "running");

    let collect = AllocSpecificRequest { alloc_id: alloc_id(1), ..Default::default() };
    let busy =
        connection.call::<_, GenericResponse>(method::ALLOCATIONS_GARBAGE_COLLECT, &collect, SOON).await;
    assert!(busy.unwrap_err().to_string().contains("still running"));
    running.servers.stop(&alloc_id(1));
    running.servers.await_status(&alloc_id(1), "complete");
    let local = running.agent.local();
    eventually("the end", || local.allocs.get(&alloc_id(1)).unwrap().is_done().then_some(()));
    let _: GenericResponse =
        connection.call(method::ALLOCATIONS_GARBAGE_COLLECT, &collect, SOON).await.unwrap();
    assert!(!running.base.path().join("alloc").join(alloc_id(1)).exists());
    let file = FsStreamRequest { alloc_id: alloc_id(1), path: "f".into(), ..Default::default() };
    let (_, failure) = running.payloads(method::FILE_SYSTEM_STREAM, &file).await;
    let text = format!("state for allocation {} not found on client", alloc_id(1));
    assert_eq!(failure, Some((404, text)));
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_connection_is_made_again() {
    let running = running().await;
    running.servers.assign(alloc(1, "service", json!([mock("t", json!({"run_for": "1h"}))])));
    running.servers.await_status(&alloc_id(1), "running");
    running.connection().await.close();
    running.servers.stop(&alloc_id(1));
    running.servers.await_status(&alloc_id(1), "complete");
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_is_changed_sent_to_the_servers_and_stored() {
    let running = running().await;
    let connection = running.connection().await;
    let change = async |pairs: &[(&str, Option<&str>)]| {
        let meta = pairs.iter().map(|(key, value)| (key.to_string(), value.map(str::to_string)));
        let request = NodeMetaApplyRequest { meta: meta.collect(), ..Default::default() };
        connection.call::<_, NodeMetaResponse>(method::NODE_META_APPLY, &request, SOON).await
    };
    let first = change(&[("rack", None), ("a.b", Some("1")), ("c", Some("2"))]).await.unwrap();
    let shown = |meta: &model::document::Map<String, String>| serde_json::to_value(meta).unwrap();
    assert_eq!(shown(&first.meta), json!({"a.b": "1", "c": "2"}));
    assert_eq!(shown(&first.configured), json!({"rack": "r7"}));
    let second = change(&[("c", None)]).await.unwrap();
    assert_eq!(serde_json::to_value(&second.dynamic).unwrap(), json!({"a.b": "1", "rack": null}));
    let refused = change(&[("1", None)]).await.unwrap_err().to_string();
    assert!(refused.starts_with("RPC Error:: 400,metadata key \"1\" is invalid"), "{refused}");
    let told = |cluster: &Cluster| cluster.registered.last().map(|node| shown(&node.meta));
    eventually("a registration", || {
        (told(&running.servers.cluster.lock().unwrap()) == Some(json!({"a.b": "1"}))).then_some(())
    });
    let times = running.servers.cluster.lock().unwrap().registered.len();
    assert_eq!(times, 2, "both changes share one");
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_outlives_the_agent() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let agent = start(settings(base.path()), &servers).await;
    let changes = [("rack".to_string(), None), ("new".to_string(), Some("1".to_string()))];
    agent.local().context.change_meta(changes.into()).unwrap();
    agent.shutdown().await;
    let agent = start(settings(base.path()), &servers).await;
    let meta = serde_json::to_value(&agent.local().context.node().meta).unwrap();
    assert_eq!(meta, json!({"new": "1"}));
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_schedule_holds_a_task_back() {
    let running = running().await;
    running.servers.assign(alloc(1, "service", json!([mock("t", json!({"run_for": "1h"}))])));
    running.servers.await_status(&alloc_id(1), "running");
    let connection = running.connection().await;
    let ask = |task: &str, state: &str| AllocPauseRequest {
        alloc_id: alloc_id(1),
        task: task.into(),
        schedule_state: state.into(),
        ..Default::default()
    };
    let state: AllocGetPauseResponse =
        connection.call(method::ALLOCATIONS_GET_PAUSE_STATE, &ask("t", ""), SOON).await.unwrap();
    assert_eq!(state.schedule_state, "");
    let set = async |task| {
        let request = ask(task, "pause");
        let set =
            connection.call::<_, GenericResponse>(method::ALLOCATIONS_SET_PAUSE_STATE, &request, SOON).await;
        set.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(set("").await, Ok(()));
    assert_eq!(set("t").await, Err("task \"t\" has no schedule".to_string()));
    assert_eq!(set("x").await, Err("RPC Error:: 400,unknown task name \"x\"".to_string()));
    running.agent.shutdown().await;
}

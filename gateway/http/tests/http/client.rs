use axum::http::Method;

use api::{AllocFileInfo, AllocResourceUsage, HostStats, TaskResourceUsage};
use model::document::Map;
use serde_json::{Value, json};
use wire::messages::{
    AllocCheckStatus, AllocChecksResponse, AllocGetPauseResponse, AllocRestartRequest, AllocStatsResponse,
    ClientStatsResponse, Empty, FsListResponse, FsLogsRequest, FsPathRequest, FsStreamRequest,
    GenericResponse, NodeIdentityResponse, NodeMetaApplyRequest, NodeMetaResponse, NodeSpecificRequest,
    QueryMeta, StreamFrameWrapper, method,
};

use crate::support::{Cluster, assert_holds, node_id, request};

/// A cluster with one placed allocation.
async fn placed() -> (Cluster, String) {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let eval = cluster.job("web").await;
    let alloc = cluster.place(eval, "web", node, 7).await.to_string();
    (cluster, alloc)
}

#[tokio::test]
async fn a_log_is_passed_on_as_the_node_frames_it() {
    let (cluster, alloc) = placed().await;
    let frames = [r#"{"Offset":5,"Data":"aGVsbG8=","File":"alloc/logs/server.stdout.0"}"#, "{}"];
    let frames = frames.map(|frame| StreamFrameWrapper::content(frame.as_bytes().to_vec()));
    cluster.nodes.streams(method::FILE_SYSTEM_LOGS, frames.to_vec());
    let got = cluster.get(&format!("/v1/client/fs/logs/{alloc}?task=server&type=stdout&follow=true")).await;
    // Nothing stands between the frames: readers split where one object ends.
    assert_eq!(got.text(), r#"{"Offset":5,"Data":"aGVsbG8=","File":"alloc/logs/server.stdout.0"}{}"#);
    assert_eq!(got.header("content-type"), "application/json");
    assert_eq!(got.header("access-control-allow-origin"), "*");
    let (node, _, asked): (_, _, FsLogsRequest) = cluster.nodes.last();
    assert_eq!((node, asked.task.as_str(), asked.log_type.as_str()), (node_id(1), "server", "stdout"));
    assert_eq!(
        (asked.origin.as_str(), asked.follow, asked.plain_text, asked.offset),
        ("start", true, false, 0)
    );
}

#[tokio::test]
async fn a_plain_log_is_its_bytes() {
    let (cluster, alloc) = placed().await;
    let pieces = ["one\n", "", "two\n"].map(|text| StreamFrameWrapper::content(text.into()));
    cluster.nodes.streams(method::FILE_SYSTEM_LOGS, pieces.to_vec());
    let query = "task=server&type=stderr&plain=true&origin=end&offset=8";
    let got = cluster.get(&format!("/v1/client/fs/logs/{alloc}?{query}")).await;
    assert_eq!((got.status.as_u16(), got.text()), (200, "one\ntwo\n"));
    assert_eq!(got.header("content-type"), "text/plain; charset=utf-8");
    let (_, _, asked): (_, _, FsLogsRequest) = cluster.nodes.last();
    assert_eq!((asked.origin.as_str(), asked.offset, asked.plain_text), ("end", 8, true));
}

#[tokio::test]
async fn an_error_before_the_first_byte_keeps_its_status() {
    let (cluster, alloc) = placed().await;
    let text = "task \"server\" not started yet. No logs available";
    cluster.nodes.streams(method::FILE_SYSTEM_LOGS, vec![StreamFrameWrapper::failure(404, text)]);
    let path = format!("/v1/client/fs/logs/{alloc}?task=server&type=stdout");
    cluster.get(&path).await.refused(404, text);
}

#[tokio::test]
async fn what_a_log_needs_is_asked_for() {
    let (cluster, alloc) = placed().await;
    let cases = [
        ("", "must provide task name"),
        ("task=server", "must provide log type (stdout/stderr)"),
        ("task=server&type=log", "must provide log type (stdout/stderr)"),
        ("task=server&type=stdout&origin=middle", "origin must be start or end"),
        ("task=server&type=stdout&follow=2", "\"2\" is not true or false, for `follow`"),
        ("task=server&type=stdout&offset=x", "\"x\" is not a whole number, for `offset`"),
    ];
    for (query, text) in cases {
        cluster.get(&format!("/v1/client/fs/logs/{alloc}?{query}")).await.refused(400, text);
    }
    let path = "/v1/client/fs/logs/7b1b6f4c?task=server&type=stdout";
    cluster.get(path).await.refused(404, "Unknown allocation \"7b1b6f4c\"");
    cluster.get(&format!("/v1/client/fs/mkdir/{alloc}")).await.refused(404, "Invalid method");
    cluster.get("/v1/client/fs/ls/").await.refused(400, "must provide a valid alloc id");
}

#[tokio::test]
async fn a_node_that_is_not_connected_cannot_be_asked() {
    let (cluster, alloc) = placed().await;
    let text = format!("No path to node \"{}\"", node_id(1));
    cluster.get(&format!("/v1/client/allocation/{alloc}/stats")).await.refused(404, &text);
    cluster.get(&format!("/v1/client/fs/cat/{alloc}?path=a")).await.refused(404, &text);
}

#[tokio::test]
async fn files_are_listed_and_looked_at() {
    let (cluster, alloc) = placed().await;
    let file = AllocFileInfo { name: "out.txt".to_string(), size: 3, ..AllocFileInfo::default() };
    let files = FsListResponse { files: vec![file].into(), meta: QueryMeta::default() };
    cluster.nodes.answers(method::FILE_SYSTEM_LIST, &files);
    let list = cluster.get(&format!("/v1/client/fs/ls/{alloc}")).await.json();
    assert_holds(&list, &json!([{"Name": "out.txt", "IsDir": false, "Size": 3}]));
    assert_eq!(list[0].get("ContentType"), None);
    let (_, _, asked): (_, _, FsPathRequest) = cluster.nodes.last();
    assert_eq!((asked.path.as_str(), asked.alloc_id.as_str()), ("/", alloc.as_str()));

    cluster.nodes.answers(method::FILE_SYSTEM_LIST, &FsListResponse::<AllocFileInfo>::default());
    assert_eq!(cluster.get(&format!("/v1/client/fs/ls/{alloc}?path=empty")).await.json(), json!([]));
    cluster.get(&format!("/v1/client/fs/stat/{alloc}")).await.refused(400, "must provide a file name");
    cluster.nodes.refuses(method::FILE_SYSTEM_STAT, "stat x: no such file or directory");
    let missing = cluster.get(&format!("/v1/client/fs/stat/{alloc}?path=x")).await;
    missing.refused(404, "stat x: no such file or directory");
}

#[tokio::test]
async fn untrusted_content_is_never_shown_as_a_page() {
    let (cluster, alloc) = placed().await;
    let page = b"<html><script>alert(1)</script>".to_vec();
    cluster.nodes.streams(method::FILE_SYSTEM_STREAM, vec![StreamFrameWrapper::content(page.clone())]);
    let got = cluster.get(&format!("/v1/client/fs/cat/{alloc}?path=index.html")).await;
    assert_eq!(got.body, page);
    assert_eq!(got.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(got.header("x-content-type-options"), "nosniff");
    assert!(got.header("content-security-policy").contains("sandbox"));

    let cut = "naïve".as_bytes()[..3].to_vec();
    cluster.nodes.streams(method::FILE_SYSTEM_STREAM, vec![StreamFrameWrapper::content(cut)]);
    let got = cluster.get(&format!("/v1/client/fs/cat/{alloc}?path=a")).await;
    assert_eq!(got.header("content-type"), "text/plain; charset=utf-8", "a character may be cut in two");
    let bytes = vec![0x7f, b'E', b'L', b'F', 0, 0xff];
    cluster.nodes.streams(method::FILE_SYSTEM_STREAM, vec![StreamFrameWrapper::content(bytes.clone())]);
    let got = cluster.get(&format!("/v1/client/fs/readat/{alloc}?path=bin&offset=4&limit=2")).await;
    assert_eq!((got.header("content-type"), got.body.to_vec()), ("application/octet-stream", bytes));
    let (_, _, asked): (_, _, FsStreamRequest) = cluster.nodes.last();
    assert_eq!((asked.offset, asked.limit, asked.plain_text, asked.follow), (4, 2, true, false));
}

#[tokio::test]
async fn invalid_numbers_get_nomads_errors() {
    let (cluster, alloc) = placed().await;
    let cases = [
        ("readat", "path=a&offset=x", 500, "\"x\" is not a whole number, for `offset`"),
        ("readat", "path=a&offset=1&limit=x", 500, "\"x\" is not a whole number, for `limit`"),
        ("readat", "path=a", 400, "must provide an offset"),
        ("stream", "path=a&offset=x", 500, "\"x\" is not a whole number, for `offset`"),
        ("stream", "path=a&follow=x", 500, "\"x\" is not true or false, for `follow`"),
        ("stream", "path=a&origin=x", 400, "origin must be start or end"),
        ("stream", "", 400, "must provide a file name"),
    ];
    for (verb, query, status, text) in cases {
        cluster.get(&format!("/v1/client/fs/{verb}/{alloc}?{query}")).await.refused(status, text);
    }
}

#[tokio::test]
async fn who_follows_is_answered_before_anything_was_written() {
    let (cluster, alloc) = placed().await;
    let mut frames = vec![StreamFrameWrapper::default()];
    cluster.nodes.streams(method::FILE_SYSTEM_LOGS, frames.clone());
    let query = "task=server&type=stdout&plain=true&follow=true";
    let path = format!("/v1/client/fs/logs/{alloc}?{query}");
    assert_eq!((cluster.get(&path).await.status.as_u16(), cluster.get(&path).await.text()), (200, ""));
    frames.push(StreamFrameWrapper::content(b"x".to_vec()));
    cluster.nodes.streams(method::FILE_SYSTEM_LOGS, frames);
    assert_eq!(cluster.get(&path).await.text(), "x");
}

#[tokio::test]
async fn a_file_is_followed_unless_asked_otherwise() {
    let (cluster, alloc) = placed().await;
    cluster.nodes.streams(method::FILE_SYSTEM_STREAM, Vec::new());
    for (query, follows) in [("", true), ("&follow=", true), ("&follow=false", false)] {
        let got = cluster.get(&format!("/v1/client/fs/stream/{alloc}?path=a{query}")).await;
        assert_eq!((got.status.as_u16(), got.text()), (200, ""));
        let (_, _, asked): (_, _, FsStreamRequest) = cluster.nodes.last();
        assert_eq!((asked.follow, asked.plain_text), (follows, false), "{query}");
    }
}

#[tokio::test]
async fn tasks_are_restarted_and_signalled_through_their_node() {
    let (cluster, alloc) = placed().await;
    cluster.nodes.answers(method::ALLOCATIONS_RESTART, &GenericResponse::default());
    let restarted =
        cluster.put(&format!("/v1/client/allocation/{alloc}/restart"), &json!({"taskname": "server"})).await;
    assert_eq!(restarted.json(), json!({"Index": 0}));
    let (_, _, asked): (_, _, AllocRestartRequest) = cluster.nodes.last();
    assert_eq!((asked.task_name.as_str(), asked.all_tasks), ("server", false));
    cluster.nodes.refuses(method::ALLOCATIONS_SIGNAL, "invalid signal \"SIGFOO\"");
    let signal = json!({"Task": "", "Signal": "SIGFOO"});
    let signalled = cluster.put(&format!("/v1/client/allocation/{alloc}/signal"), &signal).await;
    signalled.refused(500, "invalid signal \"SIGFOO\"");
    let snapshot = cluster.get(&format!("/v1/client/allocation/{alloc}/snapshot")).await;
    snapshot.refused(400, "node is not running a Nomad Client");
}

#[tokio::test]
async fn usage_can_be_limited_to_one_task() {
    let (cluster, alloc) = placed().await;
    let task = |pids| TaskResourceUsage { timestamp: pids, ..TaskResourceUsage::default() };
    let tasks: Map<_, _> = [("a".to_string(), task(1)), ("b".to_string(), task(2))].into_iter().collect();
    let usage = AllocResourceUsage { tasks, timestamp: 5, ..AllocResourceUsage::default() };
    let answer = AllocStatsResponse { stats: Some(usage), meta: QueryMeta::default() };
    cluster.nodes.answers(method::ALLOCATIONS_STATS, &answer);
    let tasks = async |query: &str| {
        let stats = cluster.get(&format!("/v1/client/allocation/{alloc}/stats{query}")).await.json();
        stats["Tasks"].as_object().map_or(0, |tasks| tasks.len())
    };
    assert_eq!((tasks("").await, tasks("?task=a").await, tasks("?task=x").await), (2, 1, 0));
}

#[tokio::test]
async fn a_nodes_own_numbers_are_asked_of_the_node_that_is_named() {
    let (cluster, _) = placed().await;
    let missing = cluster.get("/v1/client/stats").await;
    missing.refused(400, "No local Node and node_id not provided");
    let unknown = cluster.get(&format!("/v1/client/stats?node_id={}", node_id(9))).await;
    unknown.refused(404, &format!("Unknown node \"{}\"", node_id(9)));
    let stats = HostStats { uptime: 7, ..HostStats::default() };
    let answer = ClientStatsResponse { host_stats: Some(stats), meta: QueryMeta::default() };
    cluster.nodes.answers(method::CLIENT_STATS, &answer);
    let got: Value = cluster.get(&format!("/v1/client/stats?node_id={}", node_id(1))).await.json();
    assert_eq!(got["Uptime"], 7);
}

#[tokio::test]
async fn the_metadata_of_a_node_is_read_and_changed_on_it() {
    let (cluster, _) = placed().await;
    let texts = |pairs: &[(&str, &str)]| -> Map<String, String> {
        pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    };
    let reply = NodeMetaResponse {
        meta: texts(&[("rack", "r2")]),
        dynamic: [("rack".to_string(), Some("r2".to_string())), ("zone".to_string(), None)]
            .into_iter()
            .collect(),
        configured: texts(&[("rack", "r1"), ("zone", "a")]),
    };
    cluster.nodes.answers(method::NODE_META_READ, &reply);
    cluster.nodes.answers(method::NODE_META_APPLY, &reply);
    let path = format!("/v1/client/metadata?node_id={}", node_id(1));
    let shown = json!({"Meta": {"rack": "r2"}, "Dynamic": {"rack": "r2", "zone": null},
        "Static": {"rack": "r1", "zone": "a"}});
    assert_eq!(cluster.get(&path).await.json(), shown);
    cluster.nodes.answers(method::NODE_META_READ, &NodeMetaResponse::default());
    assert_eq!(cluster.get(&path).await.json(), json!({"Meta": {}, "Dynamic": {}, "Static": {}}));
    let changes = json!({"NodeID": node_id(1).to_string(), "Meta": {"rack": "r2", "zone": null}});
    let changed =
        cluster.send(request(Method::POST, "/v1/client/metadata", changes.to_string().into())).await;
    assert_eq!(changed.json(), shown);
    let (node, _, asked): (_, _, NodeMetaApplyRequest) = cluster.nodes.last();
    assert_eq!((node, &asked.meta), (node_id(1), &reply.dynamic));
    let empty = cluster.send(request(Method::POST, &path, "{}".into())).await;
    empty.refused(400, "missing required Meta object");
    cluster.put("/v1/client/metadata", &changes).await.refused(405, "Invalid method");
    cluster.get("/v1/client/metadata").await.refused(400, "No local Node and node_id not provided");
}

#[tokio::test]
async fn checks_and_schedules_are_asked_of_the_node() {
    let (cluster, alloc) = placed().await;
    cluster.nodes.answers(method::ALLOCATIONS_CHECKS, &AllocChecksResponse::default());
    for path in [format!("/v1/client/allocation/{alloc}/checks"), format!("/v1/allocation/{alloc}/checks")] {
        assert_eq!(cluster.get(&path).await.json(), json!({}));
    }
    let check = AllocCheckStatus {
        id: "c1".into(),
        check: "alive".into(),
        status: "success".into(),
        status_code: 200,
        timestamp: 7,
        ..AllocCheckStatus::default()
    };
    let results = Map([("c1".to_string(), check)].into());
    cluster.nodes.answers(method::ALLOCATIONS_CHECKS, &AllocChecksResponse { results, ..Default::default() });
    assert_eq!(
        cluster.get(&format!("/v1/client/allocation/{alloc}/checks")).await.json(),
        json!({"c1": {
            "ID": "c1", "Check": "alive", "Group": "", "Mode": "", "Output": "", "Service": "", "Task": "",
            "Status": "success", "StatusCode": 200, "Timestamp": 7
        }})
    );
    cluster.nodes.answers(method::ALLOCATIONS_GET_PAUSE_STATE, &AllocGetPauseResponse::default());
    let path = format!("/v1/client/allocation/{alloc}/pause");
    assert_eq!(cluster.get(&format!("{path}?task=server")).await.json(), json!({"ScheduleState": ""}));
    cluster.nodes.answers(method::ALLOCATIONS_SET_PAUSE_STATE, &GenericResponse::default());
    assert_eq!(cluster.put(&path, &json!({"ScheduleState": "pause"})).await.json(), json!({"Index": 0}));
    let wrong = cluster.put(&path, &json!({"Task": "server", "ScheduleState": "later"})).await;
    wrong.refused(400, "Not a valid task schedule state");
}

#[tokio::test]
async fn the_identity_of_a_node_is_shown_and_renewed_by_the_node() {
    let (cluster, _) = placed().await;
    let claims: NodeIdentityResponse =
        serde_json::from_value(json!({"Claims": {"sub": "node:global:default:x:default", "exp": 12}}))
            .unwrap();
    cluster.nodes.answers(method::NODE_IDENTITY_GET, &claims);
    cluster.nodes.answers(method::NODE_IDENTITY_RENEW, &Empty {});
    let path = format!("/v1/client/identity?node_id={}", node_id(1));
    let shown = json!({"Claims": {"sub": "node:global:default:x:default", "exp": 12}});
    assert_eq!(cluster.get(&path).await.json(), shown);
    let renewed = cluster.put("/v1/client/identity/renew", &json!({"NodeID": node_id(1).to_string()})).await;
    assert_eq!(renewed.json(), json!({}));
    let (node, asked, _): (_, _, NodeSpecificRequest) = cluster.nodes.last();
    assert_eq!((node, asked.as_str()), (node_id(1), method::NODE_IDENTITY_RENEW));
    cluster.get("/v1/client/identity").await.refused(400, "No local Node and node_id not provided");
}

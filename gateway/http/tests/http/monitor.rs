use std::time::Duration;

use axum::body::Body;
use axum::http::Method;
use futures_util::StreamExt;
use monitor::{FOLLOWERS_MAX, Follow};
use tower::ServiceExt;
use wire::messages::{AgentMonitorExportRequest, AgentMonitorRequest, StreamFrameWrapper, method};

use crate::support::{Cluster, request};

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said_before_the_stream() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    for (query, status, text) in [
        ("log_level=loud", 400, "Unknown log level: loud".to_string()),
        ("plain=x", 400, "Unknown option for plain: \"x\" is not true or false, for `plain`".to_string()),
        (
            "log_json=x",
            400,
            "Unknown option for log_json: \"x\" is not true or false, for `log_json`".to_string(),
        ),
        (
            &format!("node_id={node}&server_id=one"),
            400,
            "Cannot target node and server simultaneously".to_string(),
        ),
        ("node_id=x", 404, "Unknown node \"x\"".to_string()),
        ("server_id=nobody", 404, "unknown Nomad server nobody".to_string()),
        (&format!("node_id={node}"), 404, format!("No path to node \"{node}\"")),
    ] {
        cluster.get(&format!("/v1/agent/monitor?{query}")).await.refused(status, &text);
    }
}

#[tokio::test(start_paused = true)]
async fn its_own_log_is_followed_until_the_reader_leaves() {
    let cluster = Cluster::start().await;
    let asked = request(Method::GET, "/v1/agent/monitor?log_level=warn", Body::empty());
    let answer = cluster.app.clone().oneshot(asked).await.unwrap();
    let mut body = answer.into_body().into_data_stream();
    assert_eq!(body.next().await.unwrap().unwrap(), "{}", "a heartbeat: nothing was logged");

    let wanted = Follow::try_from(&AgentMonitorRequest::default()).unwrap();
    let others: Vec<_> = (1..FOLLOWERS_MAX).map(|_| cluster.log.follow(&wanted).unwrap()).collect();
    let full = cluster.get("/v1/agent/monitor?server_id=leader").await;
    full.refused(429, "32 follow the log of this agent: try again later");
    drop((body, others));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let all: Vec<_> = (0..FOLLOWERS_MAX).map(|_| cluster.log.follow(&wanted)).collect();
    assert!(all.iter().all(Result::is_ok), "whoever left has made room");
}

#[tokio::test]
async fn the_log_of_nodes_and_servers_comes_from_there() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let frames = ["", r#"{"Data":"YQ=="}"#, "{}"].map(|text| StreamFrameWrapper::content(text.into()));
    cluster.nodes.streams(method::AGENT_MONITOR, frames.to_vec());
    let got = cluster.get(&format!("/v1/agent/monitor?node_id={node}&log_level=debug&log_json=true")).await;
    assert_eq!(got.text(), r#"{"Data":"YQ=="}{}"#);
    let (of, method, request): (_, _, AgentMonitorRequest) = cluster.nodes.last();
    assert_eq!((of, method.as_str(), request.log_level.as_str()), (node, method::AGENT_MONITOR, "debug"));
    assert!(request.log_json && !request.plain_text);

    let got = cluster.get("/v1/agent/monitor?server_id=two").await;
    assert_eq!(got.text(), r#"{"Data":"YQ=="}{}"#);
    assert_eq!(cluster.nodes.server_asked.lock().take().unwrap(), "10.0.0.8:4647");
    let refusal = StreamFrameWrapper::failure(429, "full");
    cluster.nodes.streams(method::AGENT_MONITOR, vec![refusal]);
    cluster.get("/v1/agent/monitor?server_id=two").await.refused(429, "full");
}

#[tokio::test]
async fn what_is_wrong_with_an_export_is_said_and_others_are_asked_for_theirs() {
    let cluster = Cluster::start().await;
    for (query, status, text) in [
        ("", 400, "exactly one of on_disk and service_name must be given"),
        ("?on_disk=true&service_name=a", 400, "exactly one of on_disk and service_name must be given"),
        ("?on_disk=true&follow=true", 400, "follow goes with service_name: a log file is sent as it is"),
        ("?on_disk=true", 400, "this agent writes no log file: log_file is not configured"),
        (
            "?service_name=no/unit",
            422,
            "service_name \"no/unit\": expected the name of a systemd unit: letters, digits and :-_.\\@",
        ),
        ("?service_name=sshd", 400, "service_name \"sshd\": this agent does not run as that unit of systemd"),
    ] {
        cluster.get(&format!("/v1/agent/monitor/export{query}")).await.refused(status, text);
    }
    let node = cluster.node(1).await;
    cluster.nodes.streams(method::AGENT_MONITOR_EXPORT, vec![StreamFrameWrapper::content("x".into())]);
    let got = cluster.get(&format!("/v1/agent/monitor/export?node_id={node}&on_disk=true&plain=true")).await;
    assert_eq!(got.text(), "x");
    let (of, method, request): (_, _, AgentMonitorExportRequest) = cluster.nodes.last();
    assert_eq!((of, method.as_str()), (node, method::AGENT_MONITOR_EXPORT));
    assert!(request.on_disk && request.plain_text && !request.follow);
}

//! The client against a server that says exactly what the test wants.

use base::Index;
use sdk::{ApiRequest, Builder, Client, Error, EventQuery, LogRequest, LogSource, Query};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

#[tokio::test]
async fn a_read_carries_its_options_and_gives_back_the_index() {
    let (client, server) = serve(vec![answer(
        "200 OK",
        "X-Nomad-Index: 42\r\nX-Nomad-NextToken: web\r\n",
        "[{\"ID\":\"api\"}]",
    )])
    .await;
    let query = Query::new().prefix("a").newer_than(Index(41), base::Duration::from_secs(5));
    let jobs = client.jobs(query).await.unwrap();
    assert_eq!((jobs.index, jobs.next_token.as_deref()), (Index(42), Some("web")));
    assert_eq!(jobs.value[0].id, "api");
    let request = &server.await.unwrap()[0];
    assert!(request.starts_with("GET /v1/jobs?prefix=a&index=41&wait=5s&namespace=apps "), "{request}");
    assert!(request.contains("x-nomad-token: secret\r\n"), "{request}");
}

#[tokio::test]
async fn a_refusal_keeps_the_status_and_the_servers_words() {
    let (client, _server) = serve(vec![answer("404 Not Found", "", "job not found\n")]).await;
    let error = client.job("batch/1", Query::new()).await.unwrap_err();
    assert_eq!(error.status(), Some(404));
    assert_eq!(error.to_string(), "Unexpected response code: 404 (job not found)");
    assert!(!error.is_transient());
}

#[tokio::test]
async fn a_text_from_elsewhere_comes_whole_or_not_at_all() {
    let (client, _server) =
        serve(vec![answer("200 OK", "", "job \"web\" {}"), answer("404 Not Found", "", "gone")]).await;
    let url = format!("{}/web.nomad.hcl", client.address());
    assert_eq!(sdk::fetch(&url).await.unwrap(), "job \"web\" {}");
    assert_eq!(sdk::fetch(&url).await.unwrap_err().status(), Some(404));
}

#[tokio::test]
async fn an_answer_of_the_wrong_shape_names_the_field() {
    let (client, _server) = serve(vec![answer("200 OK", "", "{\"Priority\": \"high\"}")]).await;
    let error = client.job("web", Query::new()).await.unwrap_err().to_string();
    assert!(error.starts_with("the answer of /v1/job/web cannot be understood: Priority: "), "{error}");
}

#[tokio::test]
async fn nobody_listening_is_said_with_the_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let client = Builder { address: address.clone(), ..Builder::default() }.build().unwrap();
    let error = client.agent_self().await.unwrap_err();
    assert!(error.is_transient());
    assert!(error.to_string().starts_with(&format!("{address} cannot be reached: ")), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn logs_come_in_frames_without_separators() {
    let frames = r#"{}{"Offset":2,"Data":"aGk=","File":"alloc/logs/t.stdout.0"}{}{"Offset":3,"Data":"IQ=="}"#;
    let (client, server) = serve(vec![answer("200 OK", "", frames)]).await;
    let request =
        LogRequest { task: "t".into(), source: LogSource::Stderr, follow: true, offset: 10, from_end: true };
    let mut logs = client.logs("a1", &request).await.unwrap();
    let mut text = Vec::new();
    while let Some(frame) = logs.next().await.unwrap() {
        text.extend(frame.data.0);
    }
    assert_eq!(text, b"hi!");
    let request = &server.await.unwrap()[0];
    let query = "task=t&type=stderr&follow=true&offset=10&origin=end&namespace=apps";
    assert!(request.starts_with(&format!("GET /v1/client/fs/logs/a1?{query} ")), "{request}");
}

#[tokio::test]
async fn events_come_a_line_an_index() {
    let lines = "{}\n{\"Index\":7,\"Events\":[{\"Topic\":\"Job\",\"Key\":\"web\"}]}\n{}\n";
    let (client, server) = serve(vec![answer("200 OK", "", lines)]).await;
    let topics = vec!["Job".into(), "Node:n1".into()];
    let query = EventQuery { topics, index: 7, namespace: "*".into(), ..EventQuery::default() };
    let mut events = client.events(&query).await.unwrap();
    let first = events.next().await.unwrap().unwrap();
    assert_eq!((first.index, first.events[0].key.as_str()), (7, "web"));
    assert_eq!(events.next().await.unwrap(), None);
    let request = &server.await.unwrap()[0];
    let query = "namespace=*&index=7&topic=Job&topic=Node%3An1";
    assert!(request.starts_with(&format!("GET /v1/event/stream?{query} ")), "{request}");
}

#[tokio::test]
async fn a_subscription_goes_on_after_the_last_message_when_the_server_is_lost() {
    const SSE: &str = "Content-Type: text/event-stream\r\n";
    let (client, server) = serve(vec![
        answer(
            "200 OK",
            SSE,
            "id: 4.1\nevent: Job\ndata: {\"Key\":\"web\"}\n\nid: 6.0\nevent: checkpoint\ndata: {}\n\n",
        ),
        answer("200 OK", SSE, "id: 7.0\nevent: Node\ndata: {}\n\n"),
        answer("410 Gone", "", "index 7 is no longer kept: the oldest is 9"),
    ])
    .await;
    let mut subscription = client.subscribe(EventQuery::default(), "");
    assert_eq!(subscription.next().await.unwrap().data, "{\"Key\":\"web\"}");
    let lost = subscription.next().await.unwrap_err();
    assert!(lost.is_transient(), "{lost}");
    assert_eq!(subscription.last_id(), "6.0");
    assert_eq!(subscription.next().await.unwrap().id, "7.0");
    assert!(subscription.next().await.unwrap_err().is_transient());
    let gone = subscription.next().await.unwrap_err();
    assert_eq!((gone.status(), gone.is_transient()), (Some(410), false));
    let requests = server.await.unwrap();
    assert!(!requests[0].contains("last-event-id"), "{}", requests[0]);
    assert!(requests[1].contains("last-event-id: 6.0\r\n"), "{}", requests[1]);
    assert!(requests[2].contains("last-event-id: 7.0\r\n"), "{}", requests[2]);
}

#[tokio::test]
async fn a_server_without_server_sent_events_is_told_apart() {
    let (client, _server) = serve(vec![answer("200 OK", "Content-Type: application/json\r\n", "{}\n")]).await;
    let error = client.subscribe(EventQuery::default(), "").next().await.unwrap_err();
    assert!(matches!(error, Error::Stream(_)), "{error}");
}

#[tokio::test]
async fn a_raw_call_gives_back_whatever_was_answered() {
    let (client, server) = serve(vec![answer("403 Forbidden", "", "Permission denied")]).await;
    let response = client
        .call_raw(ApiRequest {
            method: "POST".into(),
            path: "/v1/system/gc?x=1".into(),
            filter: String::new(),
            headers: vec![("X-Test".into(), "yes".into())],
            body: "{}".into(),
        })
        .await
        .unwrap();
    assert_eq!(response.status().as_u16(), 403);
    assert_eq!(response.text().await.unwrap(), "Permission denied");
    let request = &server.await.unwrap()[0];
    assert!(request.starts_with("POST /v1/system/gc?x=1&namespace=apps "), "{request}");
    assert!(request.contains("x-test: yes\r\n") && request.ends_with("\r\n\r\n{}"), "{request}");
}

#[tokio::test]
async fn an_agent_can_be_asked_over_a_socket_file() {
    let directory = std::env::temp_dir().join(format!("sdk-test-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("agent.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = read_request(&mut stream).await;
        stream.write_all(answer("200 OK", "", "\"10.0.0.1:4647\"").as_bytes()).await.unwrap();
        request
    });
    let address = format!("unix://{}", path.display());
    let client = Builder { address, ..Builder::default() }.build().unwrap();
    assert_eq!(client.leader().await.unwrap(), "10.0.0.1:4647");
    assert!(server.await.unwrap().starts_with("GET /v1/status/leader "));
    std::fs::remove_dir_all(&directory).unwrap();
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

/// Gives each answer to one connection, in order; ends with the requests it got.
async fn serve(answers: Vec<String>) -> (Client, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            requests.push(read_request(&mut stream).await);
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        requests
    });
    let token = "secret".to_string();
    let client = Builder { address, token, namespace: "apps".into(), ..Builder::default() }.build().unwrap();
    (client, server)
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let (mut text, mut chunk) = (String::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut chunk).await.unwrap();
        text.push_str(std::str::from_utf8(&chunk[..count]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return text;
        }
    }
}

use std::io::Read;

use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{Cluster, job_json, request};

#[tokio::test]
async fn an_unknown_path_is_not_found_and_a_wrong_method_not_allowed() {
    let cluster = Cluster::start().await;
    let unknown = cluster.get("/v1/nothing").await;
    assert_eq!((unknown.status.as_u16(), unknown.text()), (404, ""));
    cluster.delete("/v1/nodes").await.refused(405, "Invalid method");
    cluster.send(request(Method::PATCH, "/v1/job/web", Body::empty())).await.refused(405, "Invalid method");
    cluster.get("/v1/validate/job").await.refused(405, "Invalid method");
}

#[tokio::test]
async fn options_run_no_route() {
    let options = |path: &str| {
        let mut request = request(Method::OPTIONS, path, Body::empty());
        request.headers_mut().insert("access-control-request-headers", "x-nomad-token".parse().unwrap());
        request
    };
    let cluster = Cluster::start().await;
    for path in ["/v1/client/gc", "/v1/jobs", "/v1/system/gc", "/v1/vax"] {
        cluster.send(options(path)).await.refused(405, "Invalid method");
    }
    assert!(cluster.nodes.asked.lock().is_empty());
    let open = cluster.send(options("/v1/client/fs/logs/x")).await;
    assert_eq!((open.status.as_u16(), open.text()), (204, ""));
    assert_eq!(open.header("access-control-allow-origin"), "*");
    assert_eq!(open.header("access-control-allow-methods"), "GET, HEAD");
    assert_eq!(open.header("access-control-allow-headers"), "x-nomad-token");

    let header = ("Access-Control-Allow-Origin".to_string(), "https://ops.lan".to_string());
    let configured = Cluster::start_with(|agent| agent.response_headers = [header].into()).await;
    let preflight = configured.send(options("/v1/jobs")).await;
    assert_eq!((preflight.status.as_u16(), preflight.text()), (204, ""));
    for path in ["/v1/jobs", "/v1/job/none", "/v1/nothing"] {
        assert_eq!(configured.get(path).await.header("access-control-allow-origin"), "https://ops.lan");
    }
}

/// A method, a path and headers.
type Sent<'a> = (Method, &'a str, &'a [(&'static str, &'a str)]);

#[tokio::test]
async fn a_page_of_another_origin_changes_nothing() {
    let from = |method: Method, path: &str, headers: &[(&'static str, &str)]| {
        let mut request = request(method, path, Body::from("{}"));
        request.headers_mut().insert("host", "nomad.lan:4646".parse().unwrap());
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        request
    };
    let foreign = ("origin", "https://evil.example");
    let refused: [Sent; 7] = [
        (Method::POST, "/v1/jobs", &[foreign, ("content-type", "text/plain")]),
        (Method::POST, "/v1/jobs", &[("origin", "null")]),
        (Method::POST, "/v1/jobs", &[("sec-fetch-site", "cross-site")]),
        (Method::POST, "/v1/jobs", &[("sec-fetch-site", "same-site")]),
        (Method::DELETE, "/v1/job/web", &[foreign]),
        (Method::GET, "/v1/client/gc", &[foreign]),
        // A token in a header does not help a socket: what a browser sends has none.
        (
            Method::GET,
            "/v1/client/allocation/x/exec",
            &[foreign, ("upgrade", "websocket"), ("x-nomad-token", "x")],
        ),
    ];
    let cluster = Cluster::start().await;
    let before = cluster.journal.batches().len();
    for (method, path, headers) in refused {
        let got = cluster.send(from(method.clone(), path, headers)).await;
        assert_eq!(got.status, 403, "{method} {path} {headers:?}: {}", got.text());
    }
    assert_eq!((cluster.journal.batches().len(), cluster.nodes.asked.lock().len()), (before, 0));
    let passed: [Sent; 6] = [
        (Method::GET, "/v1/jobs", &[foreign]),
        (Method::POST, "/v1/jobs", &[]),
        (Method::POST, "/v1/jobs", &[("origin", "http://nomad.lan:4646")]),
        (Method::POST, "/v1/jobs", &[("sec-fetch-site", "same-origin")]),
        (Method::POST, "/v1/jobs", &[("sec-fetch-site", "none")]),
        (Method::POST, "/v1/jobs", &[foreign, ("x-nomad-token", "x")]),
    ];
    for (method, path, headers) in passed {
        let got = cluster.send(from(method.clone(), path, headers)).await;
        assert_ne!(got.status, 403, "{method} {path} {headers:?}");
    }
    let header = ("Access-Control-Allow-Origin".to_string(), "https://evil.example".to_string());
    let configured = Cluster::start_with(|agent| agent.response_headers = [header].into()).await;
    assert_ne!(configured.send(from(Method::POST, "/v1/jobs", &[foreign])).await.status, 403);
}

#[tokio::test]
async fn a_parameter_that_cannot_be_read_is_refused_by_name() {
    let cluster = Cluster::start().await;
    let cases = [
        ("index=x", 400, "Invalid index"),
        ("index=-1", 400, "Invalid index"),
        ("wait=10", 400, "Invalid wait time"),
        ("stale=x", 400, "Expect `true` or `false` for `stale` query string parameter"),
        ("per_page=x", 400, "Expect a number for `per_page` query string parameter"),
        (
            "as_of=soon",
            400,
            "\"soon\" is not an index, a time like 2026-01-02T15:04:05Z or a span like -15m, for `as_of`",
        ),
        ("as_of=12", 400, "as_of: that is still to come: the newest index is 1"),
        ("as_of=2222-01-01T00:00:00Z", 400, "as_of: that is still to come: the newest index is 1"),
        ("region=mars", 500, "No path to region"),
    ];
    for path in ["/v1/jobs", "/v1/nodes", "/v1/allocations", "/v1/evaluations", "/v1/job/web"] {
        for (query, status, text) in cases {
            cluster.get(&format!("{path}?{query}")).await.refused(status, text);
        }
    }
    assert_eq!(cluster.get("/v1/jobs?region=global&stale&index=&wait=&x=%ff").await.status, 200);
}

#[tokio::test]
async fn bodies_that_are_not_documents_are_refused() {
    let cluster = Cluster::start().await;
    let send = async |body: String| cluster.send(request(Method::PUT, "/v1/jobs", Body::from(body))).await;
    send(String::new()).await.refused(400, "Request body is empty");
    let garbage = send("{".to_string()).await;
    assert_eq!(garbage.status, 400);
    assert!(garbage.text().starts_with("not JSON: "), "{}", garbage.text());
    let deep = format!("{{\"Job\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(send(deep).await.status, 400);
    let wrong = send(json!({"Job": {"TaskGroups": [{"Count": "two"}]}}).to_string()).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().starts_with("Job.TaskGroups[0].Count: "), "{}", wrong.text());
    let large = send(format!("\"{}\"", "x".repeat(16 * 1024 * 1024))).await;
    large.refused(413, "request body is larger than 16777216 bytes");
    let trailing = format!("{} and more", json!({"job": job_json("web"), "unknown": [1, null]}));
    assert_eq!(send(trailing).await.status, 200);
}

#[tokio::test]
async fn answers_are_indented_when_asked_for() {
    let cluster = Cluster::start().await;
    let compact = cluster.get("/v1/regions?pretty=0").await;
    assert_eq!(compact.text(), "[\"global\"]");
    assert_eq!(cluster.get("/v1/regions?pretty").await.text(), "[\n    \"global\"\n]\n");
    cluster.get("/v1/job/x?pretty").await.refused(404, "job not found");
}

#[tokio::test]
async fn long_answers_are_compressed_when_that_is_accepted() {
    let cluster = Cluster::start().await;
    for n in 0..200 {
        cluster.job(&format!("job-{n}")).await;
    }
    let plain = cluster.get("/v1/jobs").await;
    assert_eq!((plain.header("content-encoding"), plain.header("vary")), ("", "Accept-Encoding"));
    let accepting = |path: &str| {
        let mut request = request(Method::GET, path, Body::empty());
        request.headers_mut().insert("accept-encoding", "deflate, gzip".parse().unwrap());
        request
    };
    for path in ["/v1/jobs", "/v1/jobs?pretty"] {
        let small = cluster.send(accepting(path)).await;
        assert_eq!(small.header("content-encoding"), "gzip");
        assert_eq!(small.header("content-length"), small.body.len().to_string());
        assert!(small.body.len() * 5 < plain.body.len());
        let mut text = String::new();
        flate2::read::GzDecoder::new(&small.body[..]).read_to_string(&mut text).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), plain.json());
    }
    assert_eq!(cluster.send(accepting("/v1/regions")).await.header("content-encoding"), "");
}

#[tokio::test]
async fn a_large_list_comes_in_parts_and_reads_as_any_other() {
    let cluster = Cluster::start().await;
    for n in 0..500 {
        let mut job = job_json(&format!("job-{n:03}"));
        job["Meta"] = json!({"text": "x".repeat(1_000)});
        assert_eq!(cluster.put("/v1/jobs", &json!({"Job": job})).await.status, 200);
    }
    let whole = cluster.get("/v1/jobs?meta=true").await;
    assert!(whole.body.len() > 500_000, "{} bytes", whole.body.len());
    let listed = whole.json();
    let ids: Vec<&str> = listed.as_array().unwrap().iter().map(|job| job["ID"].as_str().unwrap()).collect();
    assert!(ids.len() == 500 && ids.is_sorted());
    assert_eq!((whole.header("content-length"), whole.index()), ("", cluster.control.state().index.0));
    for (path, coding) in [("/v1/jobs?meta=true&pretty", "gzip"), ("/v1/jobs?meta=true&pretty", "")] {
        let mut request = request(Method::GET, path, Body::empty());
        request.headers_mut().insert("accept-encoding", coding.parse().unwrap());
        let got = cluster.send(request).await;
        assert_eq!(got.header("content-encoding"), coding);
        let mut text = String::new();
        match coding {
            "gzip" => flate2::read::GzDecoder::new(&got.body[..]).read_to_string(&mut text).unwrap(),
            _ => (&got.body[..]).read_to_string(&mut text).unwrap(),
        };
        assert!(text.starts_with("[\n    {\n        \"") && text.ends_with("\n    }\n]\n"));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), listed);
    }
    let page = cluster.get("/v1/jobs?meta=true&per_page=300").await;
    assert_eq!((page.header("x-nomad-nexttoken"), page.header("content-length")), ("default.job-300", ""));
    assert_eq!(page.json().as_array().unwrap().len(), 300);
}

#[tokio::test]
async fn a_token_is_accepted_while_access_control_is_off() {
    let cluster = Cluster::start().await;
    let mut request = request(Method::GET, "/v1/jobs", Body::empty());
    request.headers_mut().insert("x-nomad-token", "not-even-an-id".parse().unwrap());
    assert_eq!(cluster.send(request).await.json(), json!([]));
}

#[tokio::test]
async fn a_table_that_nothing_was_ever_in_has_index_zero() {
    let cluster = Cluster::start().await;
    for path in ["/v1/jobs", "/v1/nodes", "/v1/allocations", "/v1/evaluations", "/v1/deployments"] {
        assert_eq!(cluster.get(path).await.index(), 0, "{path}");
    }
    assert_eq!(cluster.get("/v1/job/web").await.index(), 0);
    // Who waits with 1 waits for the first row.
    assert_eq!(cluster.get("/v1/jobs?index=1&wait=20ms").await.json(), json!([]));
}

#[tokio::test]
async fn every_route_that_is_described_as_ours_is_there() {
    let cluster = Cluster::start().await;
    let document = cluster.get("/v1/openapi.json").await.json();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            // A stream would not end: what it rejects shows whether it is there.
            let path = path.replace("{id}", "none").replace("/stream", "/stream?index=x");
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let got = cluster.send(request(method.clone(), &path, Body::from("{}"))).await;
            let is_there =
                !matches!(got.status.as_u16(), 405 | 501) && (got.status != 404 || !got.text().is_empty());
            assert!(is_there, "{method} {path}: {} {}", got.status, got.text());
        }
    }
}

#[tokio::test]
async fn answers_that_are_open_to_other_origins_say_so_to_caches_too() {
    let cluster = Cluster::start().await;
    let open = cluster.get("/v1/client/stats").await;
    assert_eq!(open.header("access-control-allow-origin"), "*");
    assert_eq!(open.header("access-control-allow-credentials"), "true");
    assert_eq!(open.header("vary"), "Accept-Encoding, Origin");
    assert_eq!(cluster.get("/v1/jobs").await.header("vary"), "Accept-Encoding");
}

#[tokio::test]
async fn services_of_a_job_are_not_news_whenever_a_job_is_written() {
    let cluster = Cluster::start().await;
    cluster.job("web").await;
    let index = cluster.get("/v1/job/web/services").await.index();
    cluster.job("other").await;
    assert_eq!(cluster.get("/v1/job/web/services").await.index(), index);
}

#[tokio::test]
async fn a_filter_that_names_no_field_has_the_words_that_the_web_interface_looks_for() {
    let cluster = Cluster::start().await;
    cluster.job("web").await;
    let refused = cluster.get("/v1/jobs?filter=status%20==%20running").await;
    assert_eq!(refused.status, 400);
    for words in ["error finding value in datum", "couldn't find key: struct field with name \"status\""] {
        assert!(refused.text().contains(words), "{}", refused.text());
    }
}

#[tokio::test]
async fn jobs_that_need_an_identity_for_vault_are_found_before_an_upgrade() {
    let cluster = Cluster::start().await;
    cluster.node(1).await;
    let path = "/v1/operator/upgrade-check/vault-workload-identity";
    let none = json!({"JobsWithoutVaultIdentity": [], "OutdatedNodes": [], "VaultTokens": []});
    assert_eq!(cluster.get(path).await.json(), none);
    cluster.get("/v1/operator/upgrade-check/x").await.refused(404, "resource not found");
}

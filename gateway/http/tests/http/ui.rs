//! The web page: paths, headers, what a browser keeps, and the switch.

use axum::body::Body;
use axum::http::{Method, header};

use crate::support::{Cluster, request};

#[tokio::test]
async fn the_root_leads_to_the_page_and_every_view_is_the_page() {
    let cluster = Cluster::start().await;
    for (path, to) in [("/", "/ui/"), ("/?x=1", "/ui/?x=1"), ("/ui", "/ui/")] {
        let home = cluster.get(path).await;
        assert_eq!((home.status.as_u16(), home.header("location")), (307, to));
    }
    let page = cluster.get("/ui/").await;
    assert!(page.text().contains("/ui/assets/app.js"), "{}", page.text());
    for path in ["/ui/jobs/a.b@default", "/ui/jobs/web?at=-5m", "/ui/x/y/z"] {
        let view = cluster.get(path).await;
        assert_eq!((view.status.as_u16(), view.header("content-type")), (200, "text/html; charset=utf-8"));
        assert_eq!(view.text(), page.text());
    }
    cluster.get("/ui/assets/none.js").await.refused(404, "the web page has no such file");
    cluster.get("/ui/assets/../index.html").await.refused(404, "the web page has no such file");
}

#[tokio::test]
async fn the_page_may_load_from_here_alone_and_stands_in_no_frame() {
    let cluster = Cluster::start().await;
    for path in ["/ui/", "/ui/assets/app.js", "/ui/assets/app.css", "/ui/assets/icon.svg"] {
        let got = cluster.get(path).await;
        let policy = got.header("content-security-policy");
        assert!(policy.starts_with("default-src 'self'; connect-src 'self'; "), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        let fixed = ["x-content-type-options", "referrer-policy", "cache-control"];
        assert_eq!(fixed.map(|name| got.header(name)), ["nosniff", "no-referrer", "no-cache"]);
    }
}

#[tokio::test]
async fn a_file_that_a_browser_has_is_not_sent_again() {
    let cluster = Cluster::start().await;
    let asked = |method: Method, known: &str, coding: &str| {
        let mut asked = request(method, "/ui/assets/app.js", Body::empty());
        for (name, value) in [(header::IF_NONE_MATCH, known), (header::ACCEPT_ENCODING, coding)] {
            asked.headers_mut().insert(name, value.parse().unwrap());
        }
        asked
    };
    let plain = cluster.send(asked(Method::GET, "\"other\"", "identity")).await;
    let zipped = cluster.send(asked(Method::GET, "\"other\"", "gzip")).await;
    assert_eq!((plain.header("content-encoding"), zipped.header("content-encoding")), ("", "gzip"));
    assert!(zipped.body.len() < plain.body.len());
    assert_eq!(zipped.header("vary"), "Accept-Encoding");
    // Strong tags: other bytes, another tag.
    let (tag, other) = (plain.header("etag").to_string(), zipped.header("etag"));
    assert!(tag.starts_with('"') && tag != other, "{tag} {other}");
    for known in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_string()] {
        let again = cluster.send(asked(Method::GET, &known, "identity")).await;
        assert_eq!((again.status.as_u16(), again.body.len()), (304, 0), "{known}");
        assert_eq!((again.header("etag"), again.header("cache-control")), (tag.as_str(), "no-cache"));
    }
    assert_eq!(cluster.send(asked(Method::GET, &tag, "gzip")).await.status, 200);
    let head = cluster.send(asked(Method::HEAD, "\"other\"", "identity")).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), plain.body.len().to_string());
    for method in [Method::PUT, Method::POST, Method::DELETE] {
        cluster.send(asked(method, "\"other\"", "identity")).await.refused(405, "Invalid method");
    }
}

#[tokio::test]
async fn a_page_that_is_switched_off_is_nowhere() {
    let cluster = Cluster::start_with(|agent| agent.ui = false).await;
    for path in ["/", "/ui", "/ui/", "/ui/jobs", "/ui/assets/app.js"] {
        let why = "the web page is switched off here: ui { enabled = true } switches it on";
        cluster.get(path).await.refused(404, why);
    }
    assert_eq!(cluster.get("/v1/jobs").await.status, 200);
}

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

#[tokio::test]
async fn a_folder_of_the_operator_takes_the_place_of_the_page() {
    let home = tempfile::tempdir().unwrap();
    let page = home.path().join("page");
    std::fs::create_dir_all(page.join("assets")).unwrap();
    std::fs::write(page.join("index.html"), "<title>theirs</title>").unwrap();
    std::fs::write(page.join("assets/vendor.css"), "a {}").unwrap();
    std::fs::write(home.path().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink("../secret", page.join("link")).unwrap();
    let folder = http_gateway::PageFolder::open(&page).unwrap();
    let cluster = Cluster::start_with(move |agent| agent.ui_folder = Some(folder)).await;
    for path in ["/ui/", "/ui/jobs/a.b@default", "/ui/assets/", "/ui/assets/none.js"] {
        let view = cluster.get(path).await;
        assert_eq!((view.status.as_u16(), view.header("content-type")), (200, "text/html; charset=utf-8"));
        assert_eq!(view.text(), "<title>theirs</title>", "{path}");
        assert!(view.header("content-security-policy").contains("style-src 'self' 'unsafe-inline'"));
    }
    let style = cluster.get("/ui/assets/vendor.css").await;
    assert_eq!((style.header("content-type"), style.text()), ("text/css; charset=utf-8", "a {}"));
    assert_eq!(style.header("x-content-type-options"), "nosniff");
    let mut again = request(Method::GET, "/ui/assets/vendor.css", Body::empty());
    again.headers_mut().insert(header::IF_NONE_MATCH, style.header("etag").parse().unwrap());
    assert_eq!(cluster.send(again).await.status, 304);
    for path in ["/ui/link", "/ui/%2e%2e/secret", "/ui/..%2fsecret", "/ui/%2Fetc%2Fpasswd"] {
        cluster.get(path).await.refused(404, "the web page has no such file");
    }
    assert_eq!(cluster.get("/").await.header("location"), "/ui/");
}

//! What an operator keeps of history stays readable when the rest is gone.

use model::event::ObjectKind;
use serde_json::{Value, json};

use super::support::short_history::ShortHistory;

const JOB: &str = r#"job "web" {
  group "g" {
    count = 1
    task "t" {
      driver = "mock_driver"
      config { run_for = "1h" }
    }
  }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_history_of_a_job_is_read_when_the_rest_is_gone() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let server = ShortHistory::start(&data, &[ObjectKind::Job, ObjectKind::Variable]).await;
    let file = home.path().join("web.nomad.hcl");
    for count in ["count = 1", "count = 3"] {
        std::fs::write(&file, JOB.replace("count = 1", count)).unwrap();
        server.run(&["job", "run", "-detach", file.to_str().unwrap()]).await.expect_success();
    }
    server.run(&["var", "put", "app/db", "password=hunter2"]).await.expect_success();
    let before = server.get("/v1/job/web/history").await;
    assert_eq!((&before["WholeFrom"], &before["Kept"]), (&json!(1), &Value::Null), "{before}");
    let registered = facts(&before, "JobRegistered");
    assert_eq!(registered.len(), 2);
    assert!(!facts(&before, "EvalCreated").is_empty());
    let first = registered[0]["Index"].as_u64().unwrap();
    let second = registered[1]["Index"].as_u64().unwrap();
    let causes = server.get(&format!("/v1/event/{second}:0/causes")).await;

    server.let_all_go().await;
    let server = below_the_log(server, &registered, &causes).await;
    by_command(&server, (first, second)).await;
    server.stop().await;

    // Also after a start, and with an index of history that is made anew.
    std::fs::remove_dir_all(data.join("server/history")).unwrap();
    let server = ShortHistory::start(&data, &[]).await;
    let server = below_the_log(server, &registered, &causes).await;
    by_command(&server, (first, second)).await;
    server.stop().await;
}

/// Over HTTP: every fact as it was, and where the gaps are.
async fn below_the_log(server: ShortHistory, registered: &[Value], causes: &Value) -> ShortHistory {
    let whole_from = server.whole_from();
    let after = server.get("/v1/job/web/history").await;
    assert_eq!(facts(&after, "JobRegistered"), registered);
    assert!(facts(&after, "EvalCreated").is_empty());
    assert_eq!(after["WholeFrom"], whole_from);
    let kept = &after["Kept"][0];
    let span = json!([1, whole_from - 1, ["job", "variable"]]);
    assert_eq!(json!([kept["FirstIndex"], kept["LastIndex"], kept["Kinds"]]), span, "{after}");

    let log = server.get("/v1/history?per_page=1000").await;
    assert_eq!(log["CutShort"], true);
    assert_eq!(facts(&log, "JobRegistered"), registered);
    assert_eq!(facts(&log, "VariableSet").len(), 1);
    assert!(facts(&log, "NodeRegistered").is_empty() && !facts(&log, "NodeMessagesEmitted").is_empty());
    // Page by page, in the same order.
    let mut paged = Vec::new();
    let mut at = "0".to_string();
    loop {
        let page = server.get(&format!("/v1/history?per_page=1&next_token={at}")).await;
        let Some(last) = page["Lines"].as_array().and_then(|lines| lines.last()) else { break };
        at = (last["Index"].as_u64().unwrap() + 1).to_string();
        paged.extend(page["Lines"].as_array().unwrap().clone());
    }
    // That history was dropped may be said meanwhile.
    let newest = log["Lines"].as_array().unwrap().last().unwrap()["Index"].as_u64();
    paged.retain(|line| line["Index"].as_u64() <= newest);
    assert_eq!(Value::from(paged), log["Lines"]);

    let index = registered[1]["Index"].as_u64().unwrap();
    assert_eq!(server.get(&format!("/v1/event/{index}:0/causes")).await["Facts"], causes["Facts"]);
    let (code, text) = server.answer(&format!("/v1/job/web?as_of={index}")).await;
    let readable =
        "From index 1 on job and variable facts are kept: /v1/history and the histories of objects have them";
    assert!(code == 410 && text.contains(readable), "{code} {text}");
    assert_eq!(server.answer("/v1/event/stream?from=1&to=2&follow=false&namespace=*").await.0, 410);
    server
}

async fn by_command(server: &ShortHistory, (first, second): (u64, u64)) {
    let whole_from = server.whole_from();
    let gap = format!("Below index {whole_from} only job and variable facts are kept");
    let history = server.run(&["history", "job", "web"]).await;
    assert!(history.stderr.contains(&gap), "{history:?}");
    let history = history.expect_success();
    assert!(history.contains("registered as version 1") && history.contains("127.0.0.1"), "{history}");
    for since in ["0", "1h", "-1h"] {
        let log = server.run(&["log", "-since", since, "-job", "web"]).await;
        assert!(log.stderr.contains(&gap) && log.stdout.contains("JobRegistered"), "{since}: {log:?}");
        let all = server.run(&["log", "-since", since]).await;
        assert!(all.stderr.contains(&gap) && all.stdout.contains("VariableSet"), "{since}: {all:?}");
    }
    let blame = server.run(&["blame", "job/web"]).await;
    assert!(blame.stderr.contains(&gap), "{blame:?}");
    let blame = blame.expect_success();
    let line = |field: &str| blame.lines().find(|line| line.contains(field)).unwrap().to_string();
    assert!(line("TaskGroups[g].Count").starts_with(&second.to_string()), "{blame}");
    assert!(line("TaskGroups[g].Tasks[t].Driver").starts_with(&first.to_string()), "{blame}");
    assert!(line("TaskGroups[g].Count").contains("anonymous at 127.0.0.1"), "{blame}");
    let who = server.run(&["audit", "who", "job/web"]).await.expect_success();
    assert!(who.contains("JobRegistered") && who.contains("anonymous at 127.0.0.1"), "{who}");

    let status = server.run(&["operator", "history", "status"]).await.expect_success();
    assert!(status.contains("Kept\n"), "{status}");
    let verified = server.run(&["operator", "history", "verify"]).await.expect_success();
    assert!(verified.contains("Kept Files   = 1") && verified.contains("= whole"), "{verified}");
    assert!(verified.contains(&format!("some facts of 1 to {}", whole_from - 1)), "{verified}");
    let export = tempfile::tempdir().unwrap();
    let folder = export.path().join("export");
    let folder = folder.to_str().unwrap();
    server.run(&["operator", "history", "export", folder]).await.expect_success();
    let again = server.run(&["operator", "history", "verify", folder]).await.expect_success();
    assert!(again.contains("Kept Files   = 1") && again.contains("= whole"), "{again}");
}

/// The facts of an answer of this kind.
fn facts(history: &Value, event: &str) -> Vec<Value> {
    let lines = history["Lines"].as_array().unwrap();
    lines.iter().filter(|line| line["Event"] == event).cloned().collect()
}

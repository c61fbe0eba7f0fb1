//! Who asked for what is recorded, over kills, and nobody changes it unseen.

use serde_json::Value;

use super::support::{AgentConfig, program, sojourn};

#[test]
fn the_record_of_requests_goes_on_after_a_kill_and_shows_what_was_changed_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server(directory.path(), "server");
    let file = config.home.join("agent.hcl");
    let record = config.home.join("audit.log");
    let words = std::fs::read_to_string(&file).unwrap();
    let block = format!(
        "audit {{\n  enabled = true\n  sink \"file\" {{\n    path = \"{}\"\n  }}\n}}\n",
        record.display()
    );
    std::fs::write(file, words + &block).unwrap();

    let agent = config.start();
    agent.run(&["namespace", "apply", "ops"]).expect_success();
    let agent = agent.kill().start();
    agent.run(&["namespace", "delete", "ops"]).expect_success();

    let text = std::fs::read_to_string(&record).unwrap();
    let entries: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let complete = entries.iter().filter(|entry| entry["payload"]["stage"] == "OperationComplete");
    let writes: Vec<_> = complete.filter(|entry| entry["payload"]["response"]["index"].is_u64()).collect();
    let of = |name: &str| {
        let operation = |entry: &&&Value| entry["payload"]["request"]["operation"] == name;
        writes.iter().find(operation).map(|entry| entry["payload"]["response"]["index"].as_u64())
    };
    assert!(of("PUT").unwrap() < of("DELETE").unwrap(), "{writes:?}");

    let verify = |path: &std::path::Path| {
        let output = program(&sojourn()).args(["audit", "verify"]).arg(path).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code(), text)
    };
    let (code, said) = verify(&record);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("{} lines in an unbroken chain", entries.len())), "{said}");
    let copy = directory.path().join("copy.log");
    std::fs::write(&copy, text.replacen("DELETE", "GET", 1)).unwrap();
    let (code, said) = verify(&copy);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("it was changed, or is no entry"), "{said}");
}

//! An agent reads its configuration again while it runs.

use rustix::process::Signal;
use serde_json::json;

use super::support::{AgentConfig, http, until};

#[test]
fn a_running_agent_takes_a_new_log_level_and_names_what_needs_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let server = AgentConfig::server(directory.path(), "server");
    let client = AgentConfig::client(directory.path(), "client", &server);
    for config in [server, client] {
        let agent = config.start();
        let file = config.home.join("agent.hcl");
        let text = std::fs::read_to_string(&file).unwrap();
        let reload = || http::put(config.http, "/v1/agent/reload", &json!(null)).unwrap();
        let level = || agent.get("/v1/agent/self")["config"]["LogLevel"].clone();
        let nothing = json!({"Applied": [], "NeedsRestart": []});
        assert_eq!((reload().json(), level()), (nothing, json!("INFO")));

        std::fs::write(&file, format!("log_level = \"TRACE\"\nenable_debug = true\n{text}")).unwrap();
        let changed = json!({"Applied": ["log_level"], "NeedsRestart": ["enable_debug"]});
        assert_eq!((reload().json(), level()), (changed, json!("TRACE")));
        // An agent without a server has no details to log while it has no tasks.
        let is_detailed = || agent.log().contains("TRACE") || agent.log().contains("DEBUG");
        until("details are logged", || !config.home.ends_with("server") || is_detailed());

        std::fs::write(&file, format!("log_levl = \"WARN\"\n{text}")).unwrap();
        let refused = reload();
        assert_eq!(refused.status, 500);
        assert!(
            refused.body.contains("agent.hcl:1:1") && refused.body.contains("log_levl"),
            "{}",
            refused.body
        );
        assert_eq!(level(), "TRACE");

        std::fs::write(&file, &text).unwrap();
        agent.signal(Signal::HUP);
        until("the signal has it read the files again", || level() == "INFO");
    }
}

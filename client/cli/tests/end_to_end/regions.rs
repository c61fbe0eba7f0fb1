//! Two regions as their users see them: through one agent, and with the way between them cut.

use std::path::Path;

use rustix::process::Signal;
use serde_json::json;

use super::cluster::{Host, Hosts};
use super::support::{Agent, AgentConfig, http, staying, until};

/// The key of gossip, the same in all regions.
const KEY: &str = "server {\n  encrypt = \"AAECAwQFBgcICQoLDA0ODw==\"\n}\n";

fn in_region(config: AgentConfig, region: &str) -> AgentConfig {
    config.with(&format!("region = \"{region}\"\n"))
}

fn gossip_of(config: &AgentConfig) -> String {
    let text = std::fs::read_to_string(config.home.join("agent.hcl")).unwrap();
    let port = text.lines().find_map(|line| line.trim().strip_prefix("serf = ")).unwrap().to_string();
    format!("{}:{port}", config.http.ip())
}

fn until_regions_know_each_other(agents: &[&Agent]) {
    for agent in agents {
        until("both regions are known and alive", || {
            let members = agent.get("/v1/agent/members");
            let members = members["Members"].as_array().unwrap();
            agent.get("/v1/regions") == json!(["eu", "us"])
                && members.iter().all(|member| member["Status"] == "alive")
        });
    }
}

#[test]
fn a_user_of_one_region_works_in_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let eu = in_region(AgentConfig::server_and_client(directory.path(), "eu-1").with(KEY), "eu").start();
    let us = in_region(AgentConfig::server(directory.path(), "us-1").with(KEY), "us").start();
    let joined = us.run(&["server", "join", &gossip_of(&eu.config)]).expect_success();
    assert_eq!(joined, "Joined 1 server successfully\n");
    until_regions_know_each_other(&[&eu, &us]);
    eu.wait_for_a_ready_node();
    let members = us.run(&["server", "members"]).expect_success();
    for name in ["eu-1.eu", "us-1.us"] {
        let line = members.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{members}"));
        assert!(line.contains("alive") && line.contains(" true "), "each leads its region: {members}");
    }

    let mut job = staying("web");
    job["Region"] = json!("eu");
    let task = &mut job["TaskGroups"][0]["Tasks"][0];
    task["Config"] = json!({"command": "/bin/sh", "args": ["-c", "echo said; sleep 600"]});
    us.register(&job);
    let alloc = eu.running("web");
    assert_eq!(http::get(us.config.http, "/v1/job/web").unwrap().status, 404, "it is in the other region");
    let status = us.run(&["status", "-region=eu", "web"]).expect_success();
    assert!(status.contains("Status") && status.contains("running"), "{status}");
    us.follow(&["alloc", "logs", "-region=eu", "-f", &alloc]).until("said", || {});
    let ran = us.run(&["alloc", "exec", "-region=eu", &alloc, "/bin/sh", "-c", "echo inside; exit 3"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, "inside\n"), "{}", ran.stderr);
    let wrong = us.run(&["status", "-region=mars"]).expect_failure();
    assert!(wrong.contains("No path to region"), "{wrong}");
    us.run(&["job", "stop", "-region=eu", "-purge", "-detach", "web"]).expect_success();
    until("the job is gone", || http::get(eu.config.http, "/v1/job/web").unwrap().status == 404);
}

/// The way between two regions, each with one server.
enum Way {
    Hosts(Hosts),
    /// This machine gives no hosts that can be cut off: the server of one region stands still.
    Paused,
}

impl Way {
    fn cut(&self, us: &Agent) {
        match self {
            Way::Hosts(hosts) => hosts.cut(1),
            Way::Paused => us.signal(Signal::STOP),
        }
    }

    fn mend(&self, us: &Agent) {
        match self {
            Way::Hosts(hosts) => hosts.join(1),
            Way::Paused => us.signal(Signal::CONT),
        }
    }
}

fn two(directory: &Path) -> (Way, [Agent; 2]) {
    let (way, hosts) = match Hosts::make(2) {
        Some(hosts) => {
            let both = [hosts.host(0), hosts.host(1)];
            (Way::Hosts(hosts), both)
        }
        None => (Way::Paused, [Host::local(), Host::local()]),
    };
    let start = |nth: usize, region: &str| {
        let host = std::slice::from_ref(&hosts[nth]);
        let config = AgentConfig::member(directory, &format!("{region}-1"), &hosts[nth], host);
        // What a host in a namespace has anyway.
        let config = if hosts[nth].ip.is_loopback() { config.with(KEY) } else { config };
        in_region(config, region).launch()
    };
    let agents = [start(0, "eu"), start(1, "us")];
    for agent in &agents {
        until("it leads its region", || {
            let answer = http::get(agent.config.http, "/v1/status/leader");
            answer.is_ok_and(|answer| answer.status == 200)
        });
    }
    (way, agents)
}

#[test]
fn a_region_that_is_cut_off_goes_on_and_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let (way, [eu, us]) = two(directory.path());
    eu.run(&["server", "join", &gossip_of(&us.config)]).expect_success();
    until_regions_know_each_other(&[&eu, &us]);
    us.register(&staying("before"));
    assert_eq!(eu.get("/v1/job/before?region=us")["Region"], "us");

    way.cut(&us);
    until("it is known to be cut off", || {
        let answer = http::get(eu.config.http, "/v1/jobs?region=us").unwrap();
        answer.status == 500 && answer.body == "No path to region"
    });
    eu.register(&staying("meanwhile"));
    assert_eq!(eu.get("/v1/operator/raft/configuration")["Servers"].as_array().unwrap().len(), 1);
    way.mend(&us);

    until_regions_know_each_other(&[&eu, &us]);
    until("requests get through again", || {
        http::get(eu.config.http, "/v1/job/before?region=us").is_ok_and(|answer| answer.status == 200)
    });
    let there = eu.get("/v1/jobs?region=us");
    assert_eq!(there.as_array().unwrap().len(), 1, "{there}");
    assert_eq!(us.get("/v1/job/meanwhile?region=eu")["Region"], "eu");
    for agent in [&eu, &us] {
        let servers = agent.get("/v1/operator/raft/configuration")["Servers"].as_array().unwrap().len();
        assert_eq!(servers, 1, "no server of another region votes");
    }
    let us = us.kill();
    until("it has failed", || {
        let members = eu.run(&["server", "members"]).expect_success();
        members.lines().any(|line| line.starts_with("us-1.us") && line.contains("failed"))
    });
    eu.run(&["server", "force-leave", "-prune", "us-1.us"]).expect_success();
    until("it is forgotten", || !eu.run(&["server", "members"]).expect_success().contains("us-1.us"));
    assert_eq!(eu.get("/v1/regions"), json!(["eu"]));
    drop(us);
}

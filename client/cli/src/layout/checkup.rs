//! The output of `operator doctor`: what of a cluster needs somebody's attention, and what to do about it.

use std::collections::BTreeSet;

use api::{AgentSelf, NodeListStub, OperatorHealthReply, SchedulerConfiguration, ServerMembers};
use serde::Serialize;
use serde_json::Value;

use super::plural;
use crate::output::{OutputStyle, Paint};

/// What was found out about one part of the cluster.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Finding {
    pub part: &'static str,
    pub ok: bool,
    pub text: String,
    /// What to do; empty where all is well.
    pub advice: &'static str,
}

/// What the cluster answered; an error is the reason why a part could not be read.
#[derive(Debug)]
pub(crate) struct Answers {
    pub leader: Result<String, String>,
    pub health: Result<OperatorHealthReply, String>,
    pub members: Result<ServerMembers, String>,
    pub scheduler: Result<SchedulerConfiguration, String>,
    pub nodes: Result<Vec<NodeListStub>, String>,
    pub agent: Result<AgentSelf, String>,
}

/// One finding or more for each part, in the order in which they should be mended.
pub(crate) fn examine(answers: &Answers) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(part("leader", &answers.leader, |address| leader(address)));
    findings.extend(part("servers", &answers.health, servers));
    findings.extend(part("members", &answers.members, members));
    findings.extend(part("scheduler", &answers.scheduler, scheduler));
    findings.extend(part("nodes", &answers.nodes, |nodes| node_problems(nodes)));
    findings.extend(part("exposure", &answers.agent, exposure));
    findings
}

fn part<T>(
    name: &'static str,
    answer: &Result<T, String>,
    examine: impl FnOnce(&T) -> Vec<Problem>,
) -> Vec<Finding> {
    let problems = match answer {
        Ok(answer) => examine(answer),
        Err(why) => vec![(format!("could not be checked: {why}"), "see whether the token may read it")],
    };
    if problems.is_empty() {
        return vec![Finding { part: name, ok: true, text: well(name).to_string(), advice: "" }];
    }
    problems.into_iter().map(|(text, advice)| Finding { part: name, ok: false, text, advice }).collect()
}

/// What is wrong, and what to do about it.
type Problem = (String, &'static str);

fn well(part: &str) -> &'static str {
    match part {
        "leader" => "the cluster has a leader",
        "servers" => "all servers are healthy, and one of them may fail",
        "members" => "all servers are alive and of one version",
        "scheduler" => "jobs are accepted and evaluated",
        "nodes" => "all nodes are ready and take work",
        _ => "the agent that was asked is open to this host only, or protected",
    }
}

fn leader(leader: &str) -> Vec<Problem> {
    match leader.is_empty() {
        true => vec![(
            "the cluster has no leader: nothing can be changed".to_string(),
            "start the servers that are down; see docs/operating.md when a majority is lost",
        )],
        false => Vec::new(),
    }
}

fn servers(health: &OperatorHealthReply) -> Vec<Problem> {
    let mut problems = Vec::new();
    for server in health.servers.iter().filter(|server| !server.healthy) {
        let text = format!(
            "{} is not healthy: {}, last contact {}",
            server.name, server.serf_status, server.last_contact
        );
        problems.push((text, "look at its log: sojourn monitor -server-id NAME"));
    }
    let voters = health.servers.iter().filter(|server| server.voter).count();
    match voters {
        1 => problems.push((
            "one server votes: what it loses is lost, and while it is away nothing can be changed"
                .to_string(),
            "run three servers, or save snapshots regularly",
        )),
        _ if health.failure_tolerance == 0 => problems.push((
            format!("none of the {} may fail", plural(voters, "voter")),
            "start the servers that are down, or add one",
        )),
        _ if voters % 2 == 0 => problems.push((
            format!("{voters} servers vote, which tolerates no more failures than {}", voters - 1),
            "add a server or remove one",
        )),
        _ => {}
    }
    problems
}

fn members(members: &ServerMembers) -> Vec<Problem> {
    let mut problems = Vec::new();
    for member in members.members.iter().filter(|member| member.status != "alive") {
        problems.push((
            format!("{} is {}", member.name, member.status),
            "start it, or have it forgotten: sojourn server force-leave NAME",
        ));
    }
    let builds: BTreeSet<&str> =
        members.members.iter().filter_map(|member| member.tags.get("build")).map(String::as_str).collect();
    if builds.len() > 1 {
        let builds = builds.into_iter().collect::<Vec<_>>().join(" and ");
        problems.push((format!("the servers run {builds}"), "finish the upgrade"));
    }
    problems
}

fn scheduler(config: &SchedulerConfiguration) -> Vec<Problem> {
    let mut problems = Vec::new();
    if config.pause_eval_broker {
        problems.push((
            "the evaluation broker is paused: nothing is placed".to_string(),
            "sojourn operator scheduler set-config -pause-eval-broker=false",
        ));
    }
    if config.reject_job_registration {
        problems.push((
            "only management tokens may register jobs".to_string(),
            "sojourn operator scheduler set-config -reject-job-registration=false",
        ));
    }
    problems
}

fn node_problems(nodes: &[NodeListStub]) -> Vec<Problem> {
    let mut problems = Vec::new();
    if nodes.is_empty() {
        problems.push(("there are no nodes: nothing can be placed".to_string(), "start a client agent"));
    }
    let mut count = |what: &str, advice, is_so: &dyn Fn(&NodeListStub) -> bool| {
        let names: Vec<&str> =
            nodes.iter().filter(|node| is_so(node)).map(|node| node.name.as_str()).collect();
        if !names.is_empty() {
            problems.push((format!("{what}: {}", some_of(&names)), advice));
        }
    };
    for status in ["down", "disconnected", "initializing"] {
        count(status, "look at its log, or start it: sojourn node status ID", &|node| node.status == status);
    }
    count("taking no work", "sojourn node eligibility -enable ID", &|node| {
        node.status == "ready" && !node.drain && node.scheduling_eligibility != "eligible"
    });
    count("without a healthy driver", "sojourn node status ID says why", &|node| {
        node.status == "ready" && !node.drivers.values().any(|driver| driver.detected && driver.healthy)
    });
    problems
}

/// Most names in one line.
const NAMES_MAX: usize = 5;

fn some_of(names: &[&str]) -> String {
    let shown = names[..names.len().min(NAMES_MAX)].join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn exposure(agent: &AgentSelf) -> Vec<Problem> {
    let lines = agent.config.get("Exposures").and_then(Value::as_array);
    let texts = lines.into_iter().flatten().filter_map(Value::as_str);
    texts.map(|text| (text.to_string(), "see docs/operating.md and docs/access-control.md")).collect()
}

pub(crate) fn text(style: &OutputStyle, findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.part.len()).max().unwrap_or(0);
    let mut text = String::new();
    for finding in findings {
        let (word, paint) = if finding.ok { ("ok  ", Paint::Green) } else { ("look", Paint::Yellow) };
        text.push_str(&format!("{}  {:width$}  {}\n", style.paint(paint, word), finding.part, finding.text));
        if !finding.advice.is_empty() {
            text.push_str(&format!("      {:width$}  -> {}\n", "", finding.advice));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use api::{AgentMember, ServerHealth};
    use model::document::DriverInfo;

    use super::*;

    fn server(name: &str, healthy: bool) -> ServerHealth {
        ServerHealth {
            name: name.to_string(),
            serf_status: if healthy { "alive" } else { "failed" }.to_string(),
            last_contact: "3s".to_string(),
            healthy,
            voter: true,
            ..ServerHealth::default()
        }
    }

    fn health(tolerance: i64, servers: Vec<ServerHealth>) -> OperatorHealthReply {
        OperatorHealthReply { failure_tolerance: tolerance, servers: servers.into(), ..Default::default() }
    }

    fn member(name: &str, status: &str, build: &str) -> AgentMember {
        let tags = [("build".to_string(), build.to_string())].into_iter().collect();
        AgentMember { name: name.to_string(), status: status.to_string(), tags, ..AgentMember::default() }
    }

    fn node(name: &str) -> NodeListStub {
        let driver = DriverInfo { detected: true, healthy: true, ..DriverInfo::default() };
        NodeListStub {
            name: name.to_string(),
            status: "ready".to_string(),
            scheduling_eligibility: "eligible".to_string(),
            drivers: [("raw_exec".to_string(), driver)].into_iter().collect(),
            ..NodeListStub::default()
        }
    }

    fn well() -> Answers {
        let three = ["a", "b", "c"];
        Answers {
            leader: Ok("10.0.0.1:4647".to_string()),
            health: Ok(health(1, three.map(|name| server(name, true)).to_vec())),
            members: Ok(ServerMembers {
                members: three.map(|name| member(name, "alive", "1")).to_vec().into(),
                ..ServerMembers::default()
            }),
            scheduler: Ok(SchedulerConfiguration::default()),
            nodes: Ok(vec![node("n1"), node("n2")]),
            agent: Ok(AgentSelf::default()),
        }
    }

    fn problems(answers: &Answers) -> Vec<String> {
        let found = examine(answers).into_iter().filter(|finding| !finding.ok);
        found.map(|finding| format!("{}: {}", finding.part, finding.text)).collect()
    }

    #[test]
    fn a_sound_cluster_gets_one_line_for_each_part() {
        let findings = examine(&well());
        assert!(findings.iter().all(|finding| finding.ok && finding.advice.is_empty()), "{findings:?}");
        let parts: Vec<_> = findings.iter().map(|finding| finding.part).collect();
        assert_eq!(parts, ["leader", "servers", "members", "scheduler", "nodes", "exposure"]);
        let text = text(&OutputStyle::for_tests(), &findings);
        assert!(text.starts_with("ok    leader     the cluster has a leader\n"), "{text}");
    }

    #[test]
    fn what_is_wrong_with_servers_is_named() {
        let mut answers = well();
        answers.leader = Ok(String::new());
        answers.health = Ok(health(0, vec![server("a", true), server("b", true), server("c", false)]));
        let members = vec![member("a", "alive", "1"), member("b", "alive", "2"), member("c", "failed", "1")];
        answers.members = Ok(ServerMembers { members: members.into(), ..ServerMembers::default() });
        assert_eq!(
            problems(&answers),
            [
                "leader: the cluster has no leader: nothing can be changed",
                "servers: c is not healthy: failed, last contact 3s",
                "servers: none of the 3 voters may fail",
                "members: c is failed",
                "members: the servers run 1 and 2",
            ]
        );
        let four = ["a", "b", "c", "d"].map(|name| server(name, true)).to_vec();
        for (servers, tolerance, text) in [
            (vec![server("a", true)], 0, "servers: one server votes"),
            (four, 1, "servers: 4 servers vote, which tolerates no more failures than 3"),
        ] {
            let answers = Answers { health: Ok(health(tolerance, servers)), ..well() };
            assert!(problems(&answers)[0].starts_with(text), "{:?}", problems(&answers));
        }
    }

    #[test]
    fn what_keeps_work_from_being_placed_is_named() {
        let changed = |name: &str, change: fn(&mut NodeListStub)| {
            let mut node = node(name);
            change(&mut node);
            node
        };
        let nodes = vec![
            node("n1"),
            changed("n2", |node| node.status = "down".to_string()),
            changed("n3", |node| node.scheduling_eligibility = "ineligible".to_string()),
            changed("n4", |node| node.drivers = Default::default()),
        ];
        let scheduler = SchedulerConfiguration {
            pause_eval_broker: true,
            reject_job_registration: true,
            ..SchedulerConfiguration::default()
        };
        let answers = Answers { nodes: Ok(nodes), scheduler: Ok(scheduler), ..well() };
        assert_eq!(
            problems(&answers),
            [
                "scheduler: the evaluation broker is paused: nothing is placed",
                "scheduler: only management tokens may register jobs",
                "nodes: down: n2",
                "nodes: taking no work: n3",
                "nodes: without a healthy driver: n4",
            ]
        );
        let none = Answers { nodes: Ok(Vec::new()), ..well() };
        assert_eq!(problems(&none), ["nodes: there are no nodes: nothing can be placed"]);
        assert_eq!(some_of(&["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
    }

    #[test]
    fn what_is_open_or_hidden_is_said() {
        let mut answers = well();
        let config = [("Exposures".to_string(), serde_json::json!(["the HTTP API is open"]))];
        answers.agent = Ok(AgentSelf { config: config.into_iter().collect(), ..AgentSelf::default() });
        answers.nodes = Err("Permission denied".to_string());
        assert_eq!(
            problems(&answers),
            ["nodes: could not be checked: Permission denied", "exposure: the HTTP API is open"]
        );
    }
}

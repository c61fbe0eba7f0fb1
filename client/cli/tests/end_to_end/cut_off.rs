//! A node that is cut off from its servers, with tasks of several drivers; then the program is replaced under them, and at
//! last the agent leaves.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::end_to_end::endurance::said::starts;
use crate::end_to_end::endurance::tasks::Things;
use crate::end_to_end::endurance::{configured, tasks_of};
use crate::end_to_end::support::cable::Cable;
use crate::end_to_end::support::podman;
use crate::end_to_end::support::{Agent, AgentConfig, SOON_LOST, engine, eventually, sojourn, text, until};

const DRIVERS: [&str; 4] = ["raw_exec", "exec", "docker", "podman"];

/// Longer than a heartbeat takes on a busy machine.
const STOP_AFTER: u64 = 4;

const LOST_AFTER: u64 = 5;

#[test]
fn a_node_that_is_cut_off_keeps_and_stops_its_tasks_as_their_jobs_say() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED a_node_that_is_cut_off: isolated tasks and containers need root");
        return;
    }
    let (Some(engine), Some(podman)) =
        (engine::shared("a_node_that_is_cut_off"), podman::own("a_node_that_is_cut_off"))
    else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let server = AgentConfig::server(directory.path(), "server").with(SOON_LOST);
    let cable = Cable::to(server.rpc);
    let advertised = format!("advertise {{\n  rpc = \"{}\"\n}}\n", cable.address);
    let server = server.with(&advertised).start();
    let mut far = server.config.clone();
    far.rpc = cable.address;
    let things = Things::made(directory.path(), &[]);
    let client = AgentConfig::client(directory.path(), "one", &far)
        .with(&things.configuration())
        .with(&configured(&engine, Some(&podman), "sojourn-cut-off"))
        .with("leave_on_terminate = true\nclient {\n  drain_on_shutdown {\n    deadline = \"20s\"\n  }\n}\n");
    let one = client.start();
    server.wait_for_a_ready_node();
    let mut case = Case { server, client, first: BTreeMap::new() };
    case.begin(&things);
    let two = AgentConfig::client(directory.path(), "two", &case.server.config).start();
    until("the other node is ready", || {
        let nodes = case.server.get("/v1/nodes");
        nodes.as_array().unwrap().iter().filter(|node| node["Status"] == "ready").count() == 2
    });

    cable.cut();
    case.goes_on_without_servers();
    cable.mend();
    case.is_known_again();

    let one = replaced(one);
    for driver in DRIVERS {
        stays_the_same(&case.client, driver, case.alloc_of(&format!("stays-{driver}")));
    }
    for driver in ["raw_exec", "exec"] {
        let alloc = case.alloc_of(&format!("stays-{driver}"));
        // The agent that came after is known to the servers before they have a path to it.
        let said = eventually("a command runs in a task of the agent before", || {
            let said = case.server.run(&["alloc", "exec", alloc, "/bin/echo", "inside"]);
            (said.code == 0).then_some(said.stdout)
        });
        assert_eq!(said, "inside\n");
    }
    leaves(&case.server, one);
    drop(two);
}

struct Case {
    server: Agent,
    /// Of the node that is cut off.
    client: AgentConfig,
    /// The first allocation of each job.
    first: BTreeMap<String, String>,
}

impl Case {
    fn begin(&mut self, things: &Things) {
        let job = |id: &str, driver: &str, disconnect: Value| {
            let mut job = things.staying(driver, 1);
            job["ID"] = id.into();
            job["Update"] = json!({"MaxParallel": 0});
            job["TaskGroups"][0]["Disconnect"] = disconnect;
            // The shortest allowed: whatever replaces another one waits for it.
            job["TaskGroups"][0]["ReschedulePolicy"] = json!({
                "Delay": seconds(5), "DelayFunction": "constant", "MaxDelay": seconds(5), "Unlimited": true
            });
            job
        };
        let here = |mut job: Value| {
            job["Constraints"] =
                json!([{"LTarget": "${node.unique.name}", "RTarget": "one", "Operand": "="}]);
            job
        };
        let stays = json!({"LostAfter": seconds(3600), "Replace": false});
        let stops = json!({"StopOnClientAfter": seconds(STOP_AFTER)});
        let moves = json!({"LostAfter": seconds(3600), "Replace": true, "Reconcile": "keep_replacement"});
        let mut jobs = vec![
            here(job("expires", "raw_exec", json!({"LostAfter": seconds(LOST_AFTER)}))),
            job("moves", "raw_exec", moves),
        ];
        for driver in DRIVERS {
            jobs.push(here(job(&format!("stays-{driver}"), driver, stays.clone())));
            jobs.push(here(job(&format!("stops-{driver}"), driver, stops.clone())));
        }
        for job in &jobs {
            self.server.register(job);
        }
        for job in &jobs {
            let id = text(&job["ID"]);
            let alloc = self.server.running(&id);
            self.first.insert(id, alloc);
        }
    }

    fn alloc_of(&self, job: &str) -> &str {
        &self.first[job]
    }

    fn is_alive(&self, job: &str) -> bool {
        tasks_of(&self.client).iter().any(|(_, alloc)| alloc == self.alloc_of(job))
    }

    fn status(&self, job: &str) -> String {
        text(&self.server.get(&format!("/v1/allocation/{}", self.alloc_of(job)))["ClientStatus"])
    }

    fn goes_on_without_servers(&self) {
        for driver in DRIVERS {
            let job = format!("stops-{driver}");
            until(&format!("{job} ends without servers"), || !self.is_alive(&job));
        }
        until("the servers give up one that is silent for too long", || self.status("expires") == "lost");
        until("another node takes over", || {
            let allocs = self.server.allocs("moves");
            let another = |alloc: &Value| alloc["ID"] != self.alloc_of("moves");
            allocs.iter().any(|alloc| another(alloc) && alloc["ClientStatus"] == "running")
        });
        for driver in DRIVERS {
            let job = format!("stays-{driver}");
            assert!(self.is_alive(&job), "{job} goes on without servers");
            assert_eq!(self.status(&job), "unknown");
        }
        assert!(self.is_alive("expires") && self.is_alive("moves"));
    }

    fn is_known_again(&self) {
        for driver in DRIVERS {
            let job = format!("stays-{driver}");
            until(&format!("{job} is known again"), || self.status(&job) == "running");
            let allocs = self.server.allocs(&job);
            let created = |alloc: &Value| alloc["CreateIndex"].as_u64().unwrap();
            let stayed = allocs.iter().find(|alloc| alloc["ID"] == self.alloc_of(&job)).unwrap();
            let nothing_took_its_place = allocs.iter().all(|alloc| created(alloc) <= created(stayed));
            assert!(nothing_took_its_place, "{job}: {}", json!(allocs));
            stays_the_same(&self.client, driver, self.alloc_of(&job));
            until(&format!("{job} says that it is connected again"), || {
                let alloc = self.server.get(&format!("/v1/allocation/{}", self.alloc_of(&job)));
                let events = alloc["TaskStates"]["main"]["Events"].as_array().unwrap().clone();
                events.iter().any(|event| event["Type"] == "Reconnected")
            });
        }
        for driver in DRIVERS {
            let job = format!("stops-{driver}");
            let next = eventually(&format!("{job} begins anew"), || {
                let mut allocs = self.server.allocs(&job).into_iter();
                allocs.find(|alloc| alloc["ClientStatus"] == "running" && alloc["ID"] != self.alloc_of(&job))
            });
            assert_eq!(next["NodeName"], "one");
        }
        until("what the servers gave up ends", || !self.is_alive("expires"));
        until("what moved ends", || !self.is_alive("moves"));
        let allocs = self.server.allocs("moves");
        let kept = allocs.iter().find(|alloc| alloc["NodeName"] == "two").unwrap();
        assert_eq!(kept["DesiredStatus"], "run");
    }
}

fn seconds(seconds: u64) -> u64 {
    seconds * 1_000_000_000
}

/// One start, which goes on.
fn stays_the_same(config: &AgentConfig, driver: &str, alloc: &str) {
    let last = || {
        let starts = starts(config, driver, alloc);
        assert_eq!(starts.len(), 1, "{driver} {alloc}: {starts:?}");
        starts[0].last
    };
    let before = last();
    until("the same start goes on", || last() > before);
}

/// The program is another file from now on, as after an upgrade; the one that started the tasks is gone.
fn replaced(agent: Agent) -> Agent {
    let config = agent.kill();
    let old = config.home.join("sojourn-old");
    // The first agent ran the built program; a second one starts from a copy, and a third after that is gone.
    std::fs::copy(sojourn(), &old).unwrap();
    let second = config.clone().of_program(&old).start();
    let config = second.kill();
    std::fs::remove_file(&old).unwrap();
    config.of_program(&sojourn()).start()
}

/// An agent that is told to leave has its node drained before.
fn leaves(server: &Agent, mut one: Agent) {
    let home = one.config.home.clone();
    let status = one.terminate();
    assert!(status.success(), "{status}: {}", one.log());
    assert!(one.log().contains("the node is drained"), "{}", one.log());
    assert_eq!(tasks_of(&one.config).len(), 0, "nothing runs on in {}", home.display());
    let nodes = server.get("/v1/nodes");
    let node = nodes.as_array().unwrap().iter().find(|node| node["Name"] == "one").unwrap();
    assert_eq!(
        (&node["LastDrain"]["Status"], &node["SchedulingEligibility"]),
        (&"complete".into(), &"ineligible".into())
    );
    assert_eq!(node["LastDrain"]["Meta"]["message"], "shutting down");
}

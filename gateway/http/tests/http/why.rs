//! Dry runs and explanations, over a scheduler that the test runs itself.

use model::document::{Allocation, DriverInfo, Node, TaskEvent, TaskState};
use model::{Command, Eligibility, EvalId, NodeId, NodeStatus};
use serde_json::{Value, json};

use crate::support::{Cluster, assert_holds, job_json, node_document, node_id};

/// A node that runs what the jobs here ask for.
pub async fn able_node(cluster: &Cluster, number: u8) -> NodeId {
    able_node_of(cluster, number, "").await
}

async fn able_node_of(cluster: &Cluster, number: u8, class: &str) -> NodeId {
    let node = node_id(number);
    let driver = DriverInfo { detected: true, healthy: true, ..DriverInfo::default() };
    let drivers = [("raw_exec".to_string(), driver)].into_iter().collect();
    let document = Node { drivers, node_class: class.to_string(), ..node_document(node, number) };
    cluster.submit(Command::RegisterNode { document: Box::new(document) }).await;
    cluster.submit(Command::UpdateNodeStatus { node, claimed: NodeStatus::Ready }).await;
    node
}

/// As a worker would: schedules and settles. `seed` is what the plan says it was drawn from.
pub async fn work(cluster: &Cluster, eval: EvalId, drawn: u64, seed: u64) {
    let state = cluster.control.state();
    let found = state.evals.lookup(eval).unwrap();
    let mut settlement = placement::schedule(&state, found, drawn, state.time).settlement;
    settlement.plan.seed = seed;
    settlement.end.as_mut().unwrap().outcome.seed = seed;
    cluster.submit(Command::SettleEval(Box::new(settlement))).await;
}

fn large(memory: i64) -> Value {
    let mut job = job_json("web");
    job["TaskGroups"][0]["Tasks"][0]["Resources"]["MemoryMB"] = json!(memory);
    job
}

pub async fn register(cluster: &Cluster, job: &Value) -> EvalId {
    let registered = cluster.put("/v1/jobs", &json!({"Job": job})).await;
    registered.json()["EvalID"].as_str().unwrap_or_else(|| panic!("{}", registered.text())).parse().unwrap()
}

/// K11, K17: over the route.
#[tokio::test]
async fn a_dry_run_shows_what_would_change_and_stores_nothing() {
    let cluster = Cluster::start().await;
    able_node(&cluster, 1).await;
    let before = cluster.control.state().index;
    let asked = json!({"Job": job_json("web"), "Diff": true});
    let plan = cluster.put("/v1/job/web/plan", &asked).await.json();
    assert_holds(
        &plan,
        &json!({
            "JobModifyIndex": 0, "Index": 0, "CreatedEvals": null, "FailedTGAllocs": null,
            "Diff": {"Type": "Added", "ID": "web", "TaskGroups": [{"Type": "Added", "Updates": {"create": 2}}]},
            "Annotations": {"DesiredTGUpdates": {"web": {"Place": 2}}, "PreemptedAllocs": null},
        }),
    );
    let failing = cluster.put("/v1/job/web/plan", &json!({"Job": large(100_000)})).await.json();
    assert_holds(
        &failing,
        &json!({
            "Diff": null, "FailedTGAllocs": {"web": {"CoalescedFailures": 1}},
            "CreatedEvals": [{"Status": "blocked", "TriggeredBy": "queued-allocs", "JobID": "web"}],
        }),
    );
    assert_eq!(cluster.control.state().index, before, "nothing is stored");
    let eval = register(&cluster, &job_json("web")).await;
    work(&cluster, eval, 1, 1).await;
    let same = cluster.put("/v1/job/web/plan", &asked).await;
    assert_eq!(json!(same.index()), same.json()["Index"]);
    let same = same.json();
    let index = cluster.get("/v1/job/web").await.json()["JobModifyIndex"].clone();
    assert_holds(&same, &json!({"Diff": {"Type": "None"}, "JobModifyIndex": index}));
    for (path, body, why) in [
        ("/v1/job/web/plan", json!({}), "Job must be specified"),
        ("/v1/job/web/plan", json!({"Job": {"ID": ""}}), "Job must have a valid ID"),
        ("/v1/job/other/plan", asked.clone(), "Job ID does not match"),
    ] {
        cluster.put(path, &body).await.refused(400, why);
    }
}

/// K20.
#[tokio::test]
async fn a_dry_run_of_a_periodic_job_shows_its_next_launch() {
    let cluster = Cluster::start().await;
    let mut job = job_json("web");
    job["Type"] = json!("batch");
    job["Periodic"] = json!({"Enabled": true, "Spec": "0 0 1 1 *", "SpecType": "cron"});
    let plan = cluster.put("/v1/job/web/plan", &json!({"Job": job})).await.json();
    let launch = plan["NextPeriodicLaunch"].as_str().unwrap();
    assert!(launch.starts_with("20") && launch.ends_with("-01-01T00:00:00Z"), "{launch}");
    let plain = cluster.put("/v1/job/web/plan", &json!({"Job": job_json("web")})).await.json();
    assert_eq!(plain["NextPeriodicLaunch"], "0001-01-01T00:00:00Z");
}

/// Plans of one round rest on each other: without that they would all have taken the same node.
#[tokio::test]
async fn a_decision_of_a_round_is_made_again_on_the_plans_before_it() {
    let cluster = Cluster::start().await;
    let nodes = [able_node(&cluster, 1).await, able_node(&cluster, 2).await, able_node(&cluster, 3).await];
    let mut evals = Vec::new();
    for id in ["a", "b", "c"] {
        let mut job = job_json(id);
        job["TaskGroups"][0]["Count"] = json!(1);
        // More than half of a node.
        job["TaskGroups"][0]["Tasks"][0]["Resources"]["MemoryMB"] = json!(5_000);
        evals.push(register(&cluster, &job).await);
    }
    let (snapshot, seed) = (cluster.control.state(), 40);
    let mut ahead = state::State::clone(&snapshot);
    for (eval, seed) in evals.iter().zip(seed..) {
        let found = ahead.evals.lookup(*eval).unwrap();
        let settlement = placement::schedule(&ahead, found, seed, snapshot.time).settlement;
        assert!(rules::fork::put_ahead(&mut ahead, &settlement, snapshot.time));
        cluster.submit(Command::SettleEval(Box::new(settlement))).await;
    }
    let mut taken = Vec::new();
    for eval in evals {
        let why = cluster.get(&format!("/v1/evaluation/{eval}/explain")).await.json();
        assert_holds(
            &why,
            &json!({"Decision": {"Recomputed": true, "AsLogged": true, "Snapshot": snapshot.index.0}}),
        );
        let placed = cluster.get(&format!("/v1/evaluation/{eval}/allocations")).await.json();
        let alloc = placed[0]["ID"].as_str().unwrap().to_string();
        taken.push(placed[0]["NodeID"].as_str().unwrap().to_string());
        let why = cluster.get(&format!("/v1/allocation/{alloc}/explain")).await.json();
        assert_holds(&why, &json!({"Decision": {"Recomputed": true, "AsLogged": true}}));
    }
    taken.sort();
    assert_eq!(taken, nodes.map(|node| node.to_string()));
}

#[tokio::test]
async fn a_decision_is_made_again_from_the_log_and_held_against_it() {
    let cluster = Cluster::start().await;
    let node = able_node(&cluster, 1).await;
    let eval = register(&cluster, &job_json("web")).await;
    let why = cluster.get(&format!("/v1/evaluation/{eval}/explain")).await.json();
    let unseen = json!({"Status": "pending", "Decision": {"Recomputed": false,
        "Note": "no scheduler has looked at it yet"},
        "WaitsFor": [{"What": "a scheduler to look at it (job-register)", "EvalID": eval.to_string()}]});
    assert_holds(&why, &unseen);
    let snapshot = cluster.control.state().index.0;
    work(&cluster, eval, u64::MAX, u64::MAX).await;
    // The state it was decided on lies behind: later nodes do not count.
    able_node(&cluster, 2).await;
    let why = cluster.get(&format!("/v1/evaluation/{eval}/explain")).await.json();
    let decision = json!({"Snapshot": snapshot, "Seed": "18446744073709551615", "Recomputed": true,
        "AsLogged": true, "Note": "", "EvalID": eval.to_string()});
    assert_holds(&why, &json!({"Status": "complete", "Decision": decision}));
    assert_holds(&why["Groups"]["web"], &json!({"Desired": {"Place": 2}, "Placed": {"NodesEvaluated": 1}}));
    let alloc = cluster.get("/v1/job/web/allocations").await.json()[0]["ID"].as_str().unwrap().to_string();
    let why = cluster.get(&format!("/v1/allocation/{alloc}/explain")).await.json();
    assert_holds(
        &why,
        &json!({
            "NodeID": node.to_string(), "Decision": decision, "DesiredStatus": "run", "ClientStatus": "pending",
            "Chain": [{"ID": alloc}], "WaitsFor": [{"What": "web.web[0]: node \"node-1\" to start it"}],
            "Transitions": [{"NewDesired": "run", "NewClient": "pending"}],
        }),
    );
    assert_eq!(why["Placed"]["ScoreMetaData"][0]["NodeID"], node.to_string());
}

#[tokio::test]
async fn a_plan_that_does_not_follow_from_the_log_is_reported() {
    let cluster = Cluster::start().await;
    able_node(&cluster, 1).await;
    let eval = register(&cluster, &job_json("web")).await;
    work(&cluster, eval, 1, 2).await;
    let why = cluster.get(&format!("/v1/evaluation/{eval}/explain")).await.json();
    assert_holds(&why, &json!({"Decision": {"Recomputed": true, "AsLogged": false}}));
}

#[tokio::test]
async fn a_job_without_room_is_explained_with_what_would_help() {
    let cluster = Cluster::start().await;
    able_node(&cluster, 1).await;
    let eval = register(&cluster, &large(10_000)).await;
    work(&cluster, eval, 7, 7).await;
    let why = cluster.get("/v1/job/web/explain").await.json();
    let blocked = cluster.get(&format!("/v1/evaluation/{eval}")).await.json()["BlockedEval"].clone();
    assert_holds(
        &why,
        &json!({
            // It has a deployment, which waits as well.
            "ID": "web", "Status": "running", "Groups": {"web": {"Wanted": 2, "Queued": 2}},
            "WaitsFor": [{"EvalID": blocked, "Until": null}, {"EvalID": ""}],
            "Deployment": {"Status": "running", "Groups": {"web": {"Healthy": 0, "DesiredTotal": 2}}},
            // What waits begins with what the evaluation before it found out.
            "Evaluation": {"ID": blocked, "Status": "blocked", "Decision": {
                "EvalID": eval.to_string(), "Recomputed": true, "AsLogged": true}},
        }),
    );
    let group = &why["Evaluation"]["Groups"]["web"];
    let lack = json!({"What": "memory", "Unit": "MiB", "Asked": 10_000, "Free": 8_192, "Short": 1_808});
    assert_holds(group, &json!({"Missing": 2, "Nearest": [{"NodeName": "node-1", "Lacks": [lack]}]}));
    let waits = why["WaitsFor"][1]["What"].as_str().unwrap();
    assert!(waits.ends_with("0 of 2 of \"web\" are healthy"), "{waits}");
    let hints = ["task \"server\" asked for 4096 MiB of memory instead of 10000"];
    assert_eq!(group["WouldFitIf"], json!(hints));
    cluster.get("/v1/job/none/explain").await.refused(404, "job not found");
    cluster.get("/v1/evaluation/none/explain").await.refused(404, "eval not found");
    cluster.get("/v1/allocation/none/explain").await.refused(404, "alloc not found");
}

#[tokio::test]
async fn what_blocked_jobs_lack_is_a_metric_by_job_and_by_class() {
    let cluster = Cluster::start().await;
    for (number, class) in [(1, ""), (2, "small"), (3, "large")] {
        able_node_of(&cluster, number, class).await;
    }
    let text = cluster.get("/v1/metrics?format=prometheus").await;
    assert!(!text.text().contains("nomad_nomad_blocked_evals_memory"), "{}", text.text());
    let eval = register(&cluster, &large(10_000)).await;
    work(&cluster, eval, 7, 7).await;
    let text = cluster.get("/v1/metrics?format=prometheus").await;
    let of_class = |class: &str| {
        let labels = format!("datacenter=\"dc1\",node_class=\"{class}\",node_pool=\"default\",host=\"one\"");
        format!("nomad_nomad_blocked_evals_memory{{{labels}}} 20000\n")
    };
    let of_job =
        "nomad_nomad_blocked_evals_job_memory{job=\"web\",namespace=\"default\",host=\"one\"} 20000\n";
    for line in [of_class("small"), of_class("large"), of_job.to_string()] {
        assert!(text.text().contains(&line), "{line} in {}", text.text());
    }
}

#[tokio::test]
async fn a_paused_broker_is_shown_as_the_reason_to_wait() {
    let cluster = Cluster::start().await;
    register(&cluster, &job_json("web")).await;
    cluster.put("/v1/operator/scheduler/configuration", &json!({"PauseEvalBroker": true})).await;
    let why = cluster.get("/v1/job/web/explain").await.json();
    let what = "the eval broker, which the scheduler configuration pauses";
    assert_holds(&why, &json!({"WaitsFor": [{"What": what}], "Evaluation": null}));
}

#[tokio::test]
async fn a_node_is_explained_with_what_keeps_it_from_work() {
    let cluster = Cluster::start().await;
    let node = able_node(&cluster, 1).await;
    let path = format!("/v1/node/{node}/explain");
    let eval = register(&cluster, &job_json("web")).await;
    work(&cluster, eval, 1, 1).await;
    let why = cluster.get(&path).await.json();
    assert_holds(&why, &json!({"Name": "node-1", "Status": "ready", "TakesWork": true, "Starting": 2}));
    assert_eq!(why["Room"][1]["What"], "memory");
    assert!(why["Room"][1]["Used"].as_u64() > Some(0), "{why}");
    cluster.submit(Command::SetNodeEligibility { node, to: Eligibility::Ineligible }).await;
    cluster.submit(Command::MissHeartbeat { node }).await;
    let why = cluster.get(&path).await.json();
    let obstacles = ["it is down, not ready", "it is not eligible for scheduling"];
    assert_holds(&why, &json!({"TakesWork": false, "Obstacles": obstacles}));
    assert_holds(&why, &json!({"WaitsFor": [{"What": "the node to connect again"}]}));
    assert!(why["Messages"][0]["Message"].as_str().unwrap().contains("heartbeat"), "{why}");
    cluster.get("/v1/node/none/explain").await.refused(404, "node not found");
}

#[tokio::test]
async fn a_failed_task_is_explained_with_its_exit_code_and_what_follows() {
    let cluster = Cluster::start().await;
    let node = able_node(&cluster, 1).await;
    let eval = register(&cluster, &job_json("web")).await;
    work(&cluster, eval, 1, 1).await;
    let placed = cluster.get("/v1/job/web/allocations").await.json()[0].clone();
    let (alloc, name) = (placed["ID"].as_str().unwrap(), placed["Name"].clone());
    let ended = TaskEvent {
        kind: "Terminated".into(),
        display_message: "Exit Code: 3".into(),
        exit_code: 3,
        ..TaskEvent::default()
    };
    let given_up = TaskEvent { kind: "Not Restarting".into(), fails_task: true, ..TaskEvent::default() };
    let task = TaskState {
        state: "dead".into(),
        failed: true,
        restarts: 2,
        events: vec![ended, given_up].into(),
        ..TaskState::default()
    };
    let failed = Allocation {
        id: alloc.to_string(),
        client_status: "failed".into(),
        task_states: [("server".to_string(), task)].into_iter().collect(),
        ..Allocation::default()
    };
    cluster.submit(Command::UpdateAllocs { node, updates: vec![failed] }).await;
    let why = cluster.get(&format!("/v1/allocation/{alloc}/explain")).await.json();
    let task = json!({"State": "dead", "ExitCode": 3, "Restarts": 2, "Trouble": "Terminated: Exit Code: 3"});
    assert_holds(&why, &json!({"Tasks": {"server": task}, "Reschedule": {"Attempts": 0, "WhyNot": ""}}));
    assert!(
        why["Reschedule"]["Policy"].as_str().unwrap().starts_with("without a limit, first after"),
        "{why}"
    );
    assert!(why["Reschedule"]["Next"].is_string(), "{why}");
    assert_eq!(why["NodeNames"][node.to_string()], "node-1");
    let job = cluster.get("/v1/job/web/explain").await.json();
    let missing = &job["Groups"]["web"]["Missing"][0];
    let slot = json!({"Name": name, "Why": "the last one is failed and is to be replaced",
        "Last": {"ID": alloc, "Trouble": "server: Terminated: Exit Code: 3"}});
    assert_holds(missing, &slot);
}

#[tokio::test]
async fn jobs_that_others_start_are_explained_with_when_and_how() {
    let cluster = Cluster::start().await;
    let mut periodic = job_json("nightly");
    periodic["Type"] = json!("batch");
    periodic["Periodic"] = json!({"Enabled": true, "Spec": "0 0 1 1 *", "SpecType": "cron"});
    cluster.put("/v1/jobs", &json!({"Job": periodic})).await;
    let why = cluster.get("/v1/job/nightly/explain").await.json();
    assert_holds(
        &why,
        &json!({"WaitsFor": [{"What": "its next launch, by its schedule"}], "Dispatch": null}),
    );
    assert_eq!(why["NextLaunch"], why["WaitsFor"][0]["Until"]);
    assert!(why["NextLaunch"].as_str().unwrap().ends_with("-01-01T00:00:00Z"), "{why}");
    let mut parameterized = job_json("mail");
    parameterized["Type"] = json!("batch");
    parameterized["ParameterizedJob"] = json!({"Payload": "required", "MetaRequired": ["who"]});
    cluster.put("/v1/jobs", &json!({"Job": parameterized})).await;
    let why = cluster.get("/v1/job/mail/explain").await.json();
    let dispatch = json!({"Payload": "required", "MetaRequired": ["who"]});
    assert_holds(&why, &json!({"WaitsFor": [{"What": "somebody to dispatch it"}], "Dispatch": dispatch}));
}

/// Deciding it again would end what answers, too.
#[tokio::test]
async fn what_ended_a_scheduler_is_explained_without_deciding_it_again() {
    let cluster = Cluster::start().await;
    able_node(&cluster, 1).await;
    let eval = register(&cluster, &job_json("web")).await;
    let state = cluster.control.state();
    let found = state.evals.lookup(eval).unwrap();
    let settlement = placement::quarantine(&state, found, 1, state.time, "the scheduler panicked: a bug");
    cluster.submit(Command::SettleEval(Box::new(settlement))).await;
    let shown = json!({
        "Status": "failed", "StatusDescription": "quarantined: the scheduler panicked: a bug",
        "Decision": {"Note": "it is not decided again: it ended a scheduler", "Recomputed": false},
    });
    assert_holds(&cluster.get(&format!("/v1/evaluation/{eval}/explain")).await.json(), &shown);
    assert_holds(&cluster.get("/v1/job/web/explain").await.json()["Evaluation"], &shown);
}

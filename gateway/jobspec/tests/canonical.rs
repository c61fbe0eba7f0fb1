//! How defaults are merged, and what servers add. `nomad_api.rs` compares each single one with Nomad's API.

use jobspec::{apply_defaults, canonicalize};
use model::document::{Duration, Job, UpdateStrategy, input};
use serde_json::{Value, json};

pub fn job(value: Value) -> Job {
    input::from_value(value).unwrap()
}

fn smallest(kind: &str) -> Job {
    job(json!({
        "ID": "example", "Type": kind,
        "TaskGroups": [{ "Name": "g", "Tasks": [{ "Name": "t", "Driver": "raw_exec" }] }],
    }))
}

#[test]
fn canonical_jobs_stay_as_they_are() {
    for kind in ["service", "batch", "system", "sysbatch"] {
        let mut once = smallest(kind);
        canonicalize(&mut once);
        let mut twice = once.clone();
        canonicalize(&mut twice);
        assert_eq!(once, twice, "{kind}");
    }
}

#[test]
fn servers_set_datacenters_pool_and_identity_and_keep_two_fields_of_the_job_update() {
    let mut given = smallest("service");
    given.update = Some(UpdateStrategy { max_parallel: Some(3), canary: Some(1), ..Default::default() });
    canonicalize(&mut given);
    assert_eq!(given.datacenters.0, ["*"]);
    assert_eq!(given.node_pool.as_deref(), Some("default"));
    let update = given.update.unwrap();
    assert_eq!((update.max_parallel, update.canary), (Some(3), Some(0)));
    assert_eq!(given.task_groups[0].update.as_ref().unwrap().canary, Some(1));
    let identity = given.task_groups[0].tasks[0].identity.as_ref().unwrap();
    assert_eq!((identity.name.as_str(), identity.audience[0].as_str()), ("default", "nomadproject.io"));
}

#[test]
fn groups_take_what_they_leave_open_from_the_job() {
    let mut given = smallest("service");
    let of_job = json!({
        "Reschedule": { "Attempts": 3, "Interval": "1h" },
        "Migrate": { "MaxParallel": 2 },
        "Update": { "MaxParallel": 5, "HealthCheck": "manual" },
    });
    let of_job = job(of_job);
    (given.reschedule, given.migrate, given.update) = (of_job.reschedule, of_job.migrate, of_job.update);
    given.task_groups[0].update = Some(UpdateStrategy { max_parallel: Some(7), ..Default::default() });
    canonicalize(&mut given);
    let group = &given.task_groups[0];
    let reschedule = group.reschedule_policy.as_ref().unwrap();
    // The default of services stands next to what was written: validation reports that the two disagree.
    assert_eq!((reschedule.attempts, reschedule.unlimited), (Some(3), Some(true)));
    assert_eq!(reschedule.delay, Some(Duration::from_secs(30)));
    assert_eq!(group.migrate.as_ref().unwrap().max_parallel, Some(2));
    let update = group.update.as_ref().unwrap();
    assert_eq!((update.max_parallel, update.health_check.as_deref()), (Some(7), Some("manual")));
    assert_eq!((given.reschedule, given.migrate), (None, None));
}

#[test]
fn a_scaled_group_starts_at_its_minimum() {
    let mut given = smallest("service");
    given.task_groups[0].scaling =
        job(json!({ "TaskGroups": [{ "Scaling": { "Min": 4, "Max": 9 } }] })).task_groups[0].scaling.clone();
    apply_defaults(&mut given);
    assert_eq!(given.task_groups[0].count, Some(4));
    assert!(
        given.task_groups[0].scaling.as_ref().unwrap().target.is_empty(),
        "the target is the server's to say"
    );
    canonicalize(&mut given);
    let scaling = given.task_groups[0].scaling.as_ref().unwrap();
    assert_eq!(scaling.target["Group"], "g");
    assert_eq!((scaling.enabled, scaling.kind.as_str()), (Some(true), "horizontal"));
}

#[test]
fn services_and_checks_are_named_after_their_place() {
    let mut given = job(json!({
        "ID": "shop",
        "TaskGroups": [{
            "Name": "web",
            "Services": [{ "Checks": [{ "Type": "tcp" }], "CheckRestart": { "Limit": 3 } }],
            "Tasks": [{ "Name": "t", "Services": [{}, { "Name": "${JOB}-x-${TASK}" }] }],
        }],
    }));
    apply_defaults(&mut given);
    assert_eq!(given.task_groups[0].services[0].checks[0].name, "", "checks are named by servers");
    canonicalize(&mut given);
    let group = &given.task_groups[0];
    assert_eq!(group.services[0].name, "shop-web");
    assert_eq!(group.services[0].checks[0].name, "service: \"shop-web\" check");
    assert_eq!(group.services[0].checks[0].check_restart.as_ref().unwrap().limit, 3);
    assert_eq!(group.tasks[0].services[0].name, "shop-web-t");
    assert_eq!(group.tasks[0].services[1].name, "shop-x-t");
}

#[test]
fn servers_show_where_services_belong() {
    let mut given = job(json!({
        "ID": "shop", "Namespace": "team",
        "TaskGroups": [{
            "Name": "web",
            "Services": [{ "Provider": "nomad", "Namespace": "copied" }],
            "Tasks": [{ "Name": "t", "Services": [{ "Checks": [{ "Type": "script" }] }] }],
        }],
    }));
    apply_defaults(&mut given);
    assert_eq!(given.task_groups[0].consul, None, "what is left open is the server's to say");
    canonicalize(&mut given);
    let group = &given.task_groups[0];
    assert_eq!(group.consul.as_ref().unwrap().cluster, "default");
    let (of_group, of_task) = (&group.services[0], &group.tasks[0].services[0]);
    assert_eq!((of_group.namespace.as_str(), of_group.task_name.as_str()), ("team", ""));
    assert_eq!((of_task.namespace.as_str(), of_task.task_name.as_str()), ("default", "t"));
    assert_eq!(of_task.checks[0].task_name, "t");
}

/// D90. Nomad's servers accept the older spellings and ignore them; here they mean what they say.
#[test]
fn older_spellings_of_disconnect_become_the_block() {
    let mut given = smallest("service");
    given.task_groups[0].max_client_disconnect = Some(Duration::from_secs(60));
    let warning =
        "group \"g\": max_client_disconnect is an older spelling of lost_after in a disconnect block";
    assert_eq!(texts(&given), [warning]);
    canonicalize(&mut given);
    let group = &given.task_groups[0];
    let disconnect = group.disconnect.as_ref().unwrap();
    assert_eq!(disconnect.lost_after, Some(Duration::from_secs(60)));
    assert_eq!((disconnect.replace, disconnect.reconcile.as_deref()), (Some(true), Some("best_score")));
    assert_eq!(group.max_client_disconnect, None);
}

fn texts(job: &model::document::Job) -> Vec<String> {
    jobspec::findings(job, &jobspec::NoNodes).iter().map(ToString::to_string).collect()
}

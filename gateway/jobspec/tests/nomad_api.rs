//! The canonical form of jobs, compared with Nomad's API type by type: which fields there are, which are null, which
//! are empty, and what each defaults to.

use std::sync::LazyLock;

use jobspec::{apply_defaults, canonicalize, client_form};
use model::document::{Job, input};
use serde_json::{Map, Value, json};

static CONTRACT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../api/nomad/api-types.json")).unwrap());

/// A fully written job: each list and map has an element, each object is there, each scalar is what `scalar` gives.
pub fn full(kind: &str, scalar: &dyn Fn(&str) -> Value) -> Value {
    match kind {
        _ if kind.starts_with("list<") => json!([full(&kind[5..kind.len() - 1], scalar)]),
        _ if kind.starts_with("map<") => {
            let (_, value) = kind[4..kind.len() - 1].split_once(',').unwrap();
            json!({ "key": full(value.trim(), scalar) })
        }
        _ => match CONTRACT["types"].get(kind) {
            Some(found) if found["kind"] == "alias" => full(found["of"].as_str().unwrap(), scalar),
            Some(_) => {
                let known = fields(kind).filter(|field| field["side"] != "server_extra");
                let member = |field: &Value| (text(field, "name"), full(&text(field, "type"), scalar));
                Value::Object(known.map(member).collect())
            }
            None => scalar(kind),
        },
    }
}

pub fn one_of_each(kind: &str) -> Value {
    match kind {
        "string" => json!("text"),
        "bool" => json!(true),
        "bytes_base64" => json!("AAEC"),
        "any" => json!({ "any": [1, "two"] }),
        "timestamp" => json!("2026-01-02T03:04:05Z"),
        _ => json!(7),
    }
}

pub fn text(field: &Value, key: &str) -> String {
    field[key].as_str().unwrap().to_string()
}

pub fn fields(kind: &str) -> impl Iterator<Item = &'static Value> {
    CONTRACT["types"][kind]["fields"].as_array().unwrap().iter()
}

fn job(value: Value) -> Job {
    input::from_value(value).unwrap()
}

/// Compares an object with its type: the same fields, each of its kind.
fn check_fields(kind: &str, value: &Value, path: &str) {
    let Some(object) = value.as_object() else { return };
    let client = fields(kind).filter(|field| field["side"] != "server_extra");
    let optional = |field: &Value| field["omitempty"] == "client" || field["omitempty"] == "both";
    let mut expected: Vec<String> = client
        .filter(|field| !optional(field) || object.contains_key(&text(field, "name")))
        .map(|field| text(field, "name"))
        .collect();
    let mut found: Vec<String> = object.keys().cloned().collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "{path}: the fields of {kind}");
    for field in fields(kind) {
        if let Some(value) = object.get(field["name"].as_str().unwrap()) {
            check_value(&text(field, "type"), value, &format!("{path}.{}", text(field, "name")));
        }
    }
}

fn check_value(kind: &str, value: &Value, path: &str) {
    if let Some(inner) = kind.strip_prefix("list<").and_then(|rest| rest.strip_suffix('>')) {
        assert!(value.is_null() || value.is_array(), "{path}: {value}");
        for (at, item) in value.as_array().into_iter().flatten().enumerate() {
            check_value(inner, item, &format!("{path}[{at}]"));
        }
    } else if let Some(inner) = kind.strip_prefix("map<").and_then(|rest| rest.strip_suffix('>')) {
        assert!(value.is_null() || value.is_object(), "{path}: {value}");
        let (_, inner) = inner.split_once(',').unwrap();
        for (key, item) in value.as_object().into_iter().flatten() {
            check_value(inner.trim(), item, &format!("{path}.{key}"));
        }
    } else if let Some(found) = CONTRACT["types"].get(kind) {
        match found["of"].as_str() {
            Some(of) => check_value(of, value, path),
            None => check_fields(kind, value, path),
        }
    }
}

#[test]
fn the_client_form_has_every_field_of_every_type_and_no_other() {
    let mut full_job = job(full("Job", &one_of_each));
    check_fields("Job", &client_form(&full_job), "Job");
    apply_defaults(&mut full_job);
    check_fields("Job", &client_form(&full_job), "Job");
    check_fields("Job", &client_form(&Job::default()), "Job");
}

#[test]
fn what_is_written_is_kept_whatever_its_field() {
    let written = full("Job", &one_of_each);
    let mut kept = job(written.clone());
    assert_eq!(client_form(&kept), written, "reading and printing");
    apply_defaults(&mut kept);
    // A signal is written in capitals, and a service is not asked what its checks inherit.
    let mut defaulted = client_form(&kept);
    let signal = "/TaskGroups/0/Tasks/0/Templates/0/ChangeSignal";
    assert_eq!(defaulted.pointer(signal), Some(&json!("TEXT")));
    *defaulted.pointer_mut(signal).unwrap() = json!("text");
    assert_eq!(defaulted, written, "nothing that was said is replaced by a default");
}

/// The smallest service job, canonical as Nomad's API shows it.
fn canonical(kind: &str) -> Value {
    CONTRACT["canonical_jobs"][kind].clone()
}

#[test]
fn the_smallest_job_of_each_type_is_nomads_to_the_last_field() {
    for kind in ["service", "batch", "system", "sysbatch"] {
        let group = json!({ "Name": "g", "Tasks": [{ "Name": "t", "Driver": "raw_exec" }] });
        let mut smallest = job(json!({ "ID": "example", "Type": kind, "TaskGroups": [group] }));
        apply_defaults(&mut smallest);
        assert_eq!(client_form(&smallest), canonical(kind), "{kind}");
    }
}

/// Where types of Nomad's API stand in a job.
const PLACES: [(&str, &str); 33] = [
    ("TaskGroup", "/TaskGroups/0"),
    ("Task", "/TaskGroups/0/Tasks/0"),
    ("Affinity", "/Affinities/0"),
    ("Affinity", "/TaskGroups/0/Tasks/0/Resources/Devices/0/Affinities/0"),
    ("Spread", "/TaskGroups/0/Spreads/0"),
    ("UpdateStrategy", "/Update"),
    ("UpdateStrategy", "/TaskGroups/0/Update"),
    ("MigrateStrategy", "/TaskGroups/0/Migrate"),
    ("EphemeralDisk", "/TaskGroups/0/EphemeralDisk"),
    ("DisconnectStrategy", "/TaskGroups/0/Disconnect"),
    ("PeriodicConfig", "/Periodic"),
    ("Multiregion", "/Multiregion"),
    ("MultiregionRegion", "/Multiregion/Regions/0"),
    ("Service", "/TaskGroups/0/Services/0"),
    ("ServiceCheck", "/TaskGroups/0/Services/0/Checks/0"),
    ("ServiceWeights", "/TaskGroups/0/Services/0/Weights"),
    ("CheckRestart", "/TaskGroups/0/Services/0/Checks/0/CheckRestart"),
    ("Resources", "/TaskGroups/0/Tasks/0/Resources"),
    ("RequestedDevice", "/TaskGroups/0/Tasks/0/Resources/Devices/0"),
    ("NUMAResource", "/TaskGroups/0/Tasks/0/Resources/NUMA"),
    ("LogConfig", "/TaskGroups/0/Tasks/0/LogConfig"),
    ("TaskArtifact", "/TaskGroups/0/Tasks/0/Artifacts/0"),
    ("Vault", "/TaskGroups/0/Tasks/0/Vault"),
    ("Template", "/TaskGroups/0/Tasks/0/Templates/0"),
    ("ChangeScript", "/TaskGroups/0/Tasks/0/Templates/0/ChangeScript"),
    ("VolumeMount", "/TaskGroups/0/Tasks/0/VolumeMounts/0"),
    ("TaskCSIPluginConfig", "/TaskGroups/0/Tasks/0/CSIPluginConfig"),
    ("ConsulIngressListener", "/TaskGroups/0/Services/0/Connect/Gateway/Ingress/Listeners/0"),
    ("ConsulGatewayProxy", "/TaskGroups/0/Services/0/Connect/Gateway/Proxy"),
    ("SidecarTask", "/TaskGroups/0/Services/0/Connect/SidecarTask"),
    ("ConsulUpstream", "/TaskGroups/0/Services/0/Connect/SidecarService/Proxy/Upstreams/0"),
    ("Consul", "/TaskGroups/0/Consul"),
    ("ScalingPolicy", "/TaskGroups/0/Scaling"),
];

#[test]
fn every_default_of_nomad_is_what_an_empty_object_gets() {
    let mut compared = 0;
    for (kind, place) in PLACES {
        let mut given = job(placed(place));
        apply_defaults(&mut given);
        let form = client_form(&given);
        let object = form.pointer(place).unwrap_or_else(|| panic!("{place} is gone"));
        for field in fields(kind).filter(|field| field.get("default").is_some()) {
            let (name, default) = (text(field, "name"), &field["default"]);
            let default = default.get("ns").unwrap_or(default);
            let words = default.as_str().is_some_and(|words| words.starts_with('<'));
            if !words {
                assert_eq!(&object[&name], default, "{kind}.{name} at {place}");
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared} defaults");
}

/// A service job in which nothing is said but that this object is there.
fn placed(place: &str) -> Value {
    let steps: Vec<&str> = place.split('/').skip(1).collect();
    steps.iter().rev().fold(json!({}), |inner, step| match *step {
        "0" => json!([inner]),
        name => Value::Object(Map::from_iter([(name.to_string(), inner)])),
    })
}

#[test]
fn reschedule_defaults_follow_the_type_of_the_job() {
    for (kind, expected) in CONTRACT["reschedule_defaults_by_job_type"].as_object().unwrap() {
        let mut given = job(json!({ "Type": kind, "TaskGroups": [{ "ReschedulePolicy": {} }] }));
        apply_defaults(&mut given);
        assert_eq!(client_form(&given)["TaskGroups"][0]["ReschedulePolicy"], *expected, "{kind}");
    }
}

#[test]
fn notes_on_single_fields_hold() {
    let after = |value: Value| {
        let mut given = job(value);
        apply_defaults(&mut given);
        client_form(&given)
    };
    let task = |task: Value| {
        after(json!({ "TaskGroups": [{ "Tasks": [task] }] }))["TaskGroups"][0]["Tasks"][0].clone()
    };
    assert_eq!(task(json!({ "Lifecycle": {} }))["Lifecycle"], Value::Null);
    assert_eq!(task(json!({ "Resources": { "Cores": 2 } }))["Resources"]["CPU"], 0);
    assert_eq!(task(json!({ "Resources": { "Cores": 0 } }))["Resources"]["CPU"], 0);
    assert_eq!(task(json!({ "Resources": { "CPU": 500 } }))["Resources"]["Cores"], 0);
    assert_eq!(task(json!({ "LogConfig": { "Enabled": false } }))["LogConfig"]["Disabled"], true);
    let template = |template: Value| task(json!({ "Templates": [template] }))["Templates"][0].clone();
    assert_eq!(template(json!({ "ChangeMode": "signal" }))["ChangeSignal"], "SIGHUP");
    assert_eq!(
        template(json!({ "ChangeMode": "signal", "ChangeSignal": "sigusr1" }))["ChangeSignal"],
        "SIGUSR1"
    );
    let artifact =
        |artifact: Value| task(json!({ "Artifacts": [artifact] }))["Artifacts"][0]["RelativeDest"].clone();
    assert_eq!(artifact(json!({ "GetterSource": "https://a/b/c.tgz" })), "local/");
    assert_eq!(artifact(json!({ "GetterSource": "https://a/b/c.tgz", "GetterMode": "file" })), "local/c.tgz");
    let job = after(json!({ "Type": "batch", "Update": { "MaxParallel": 3 } }));
    assert_eq!((&job["Update"]["MaxParallel"], &job["Update"]["HealthCheck"]), (&json!(3), &json!("checks")));
    let group = after(json!({ "Update": { "MaxParallel": 0 }, "TaskGroups": [{}] }))["TaskGroups"][0].clone();
    assert_eq!(group["Update"]["MaxParallel"], 0, "a job may turn deployments off for its groups");
    let group = after(json!({ "TaskGroups": [{ "Scaling": { "Min": 4 } }] }))["TaskGroups"][0].clone();
    assert_eq!((&group["Count"], &group["Scaling"]["Min"]), (&json!(4), &json!(4)));
    let group = after(json!({ "TaskGroups": [{ "Count": 2, "Scaling": {} }] }))["TaskGroups"][0].clone();
    assert_eq!(group["Scaling"]["Min"], 2);
    let task_restart = json!({ "TaskGroups": [{ "RestartPolicy": { "Attempts": 9 }, "Tasks": [{ "RestartPolicy": { "Delay": "1s" } }] }] });
    let restart = after(task_restart)["TaskGroups"][0]["Tasks"][0]["RestartPolicy"].clone();
    assert_eq!((&restart["Attempts"], &restart["Delay"]), (&json!(9), &json!(1_000_000_000)));
    let group = after(json!({ "TaskGroups": [{ "MaxClientDisconnect": "1h" }] }))["TaskGroups"][0].clone();
    assert_eq!(
        group["Disconnect"],
        Value::Null,
        "older spellings stay what they are until a server reads them"
    );
}

#[test]
fn servers_show_every_scalar() {
    let mut given = job(full("Job", &one_of_each));
    canonicalize(&mut given);
    let form = serde_json::to_value(&given).unwrap();
    assert_eq!((form.get("Reschedule"), form.get("Migrate")), (None, None));
    let mut smallest =
        job(json!({ "ID": "example", "TaskGroups": [{ "Name": "g", "Tasks": [{ "Name": "t" }] }] }));
    canonicalize(&mut smallest);
    let form = serde_json::to_value(&smallest).unwrap();
    for field in fields("Job").filter(|field| field["side"] != "client_only") {
        let (name, kind) = (text(field, "name"), text(field, "type"));
        let scalar = ["string", "bool", "int", "uint64", "int64"].contains(&kind.as_str());
        assert!(!scalar || !form[&name].is_null(), "Job.{name} is null");
    }
}

use model::document::Job;
use serde_json::{Map, Value as Json, json};

type Object = Map<String, Json>;

/// The JSON of a job as clients print it: every field is there, also those that servers leave out or no longer know.
///
/// What `job run -output` shows and `POST /v1/jobs/parse` answers. Servers keep and send the document itself.
///
/// What is added are the fields with `omitempty` or `side` in `gateway/api/nomad/api-types.json`; a test walks
/// all of them.
pub fn client_form(job: &Job) -> Json {
    let mut form = serde_json::to_value(job).expect("a job is JSON");
    if let Json::Object(job) = &mut form {
        add(job, &[("Reschedule", Json::Null), ("Migrate", Json::Null)]);
        each(job, "Multiregion", multiregion);
        each(job, "Periodic", |periodic| empty_list(periodic, "Specs"));
        each(job, "TaskGroups", group);
    }
    form
}

/// Runs `edit` on the object of this name, or on every object of a list or map of this name.
fn each(object: &mut Object, name: &str, edit: impl Fn(&mut Object)) {
    match object.get_mut(name) {
        Some(Json::Object(one)) => edit(one),
        Some(Json::Array(many)) => many.iter_mut().filter_map(Json::as_object_mut).for_each(edit),
        _ => {}
    }
}

fn add(object: &mut Object, fields: &[(&str, Json)]) {
    for (name, zero) in fields {
        object.entry(*name).or_insert_with(|| zero.clone());
    }
}

/// A few lists are empty rather than unset.
fn empty_list(object: &mut Object, name: &str) {
    if object.get(name).is_none_or(Json::is_null) {
        object.insert(name.to_string(), json!([]));
    }
}

fn multiregion(object: &mut Object) {
    empty_list(object, "Regions");
    each(object, "Regions", |region| {
        empty_list(region, "Datacenters");
        if region.get("Meta").is_none_or(Json::is_null) {
            region.insert("Meta".to_string(), json!({}));
        }
    });
}

fn group(object: &mut Object) {
    each(object, "Networks", network);
    each(object, "Services", service);
    each(object, "Scaling", |scaling| add(scaling, &[("Namespace", json!(""))]));
    each(object, "Tasks", task);
}

fn task(object: &mut Object) {
    if object.get("CSIPluginConfig").is_some_and(Json::is_null) {
        object.remove("CSIPluginConfig");
    }
    each(object, "Services", service);
    each(object, "Resources", resources);
    each(object, "LogConfig", logs);
    each(object, "Vault", |vault| add(vault, &[("Policies", Json::Null)]));
    each(object, "ScalingPolicies", |scaling| add(scaling, &[("Namespace", json!(""))]));
    each(object, "Templates", |template| {
        each(template, "ChangeScript", |script| empty_list(script, "Args"));
    });
}

fn resources(object: &mut Object) {
    each(object, "Networks", network);
}

fn logs(object: &mut Object) {
    add(object, &[("Enabled", Json::Null)]);
}

fn network(object: &mut Object) {
    for text in ["Mode", "Device", "CIDR", "IP", "Hostname"] {
        add(object, &[(text, json!(""))]);
    }
    for unset in ["DNS", "ReservedPorts", "DynamicPorts", "MBits", "CNI"] {
        add(object, &[(unset, Json::Null)]);
    }
    each(object, "ReservedPorts", port);
    each(object, "DynamicPorts", port);
}

fn port(object: &mut Object) {
    add(object, &[("Label", json!("")), ("Value", json!(0)), ("To", json!(0)), ("HostNetwork", json!(""))]);
    add(object, &[("IgnoreCollision", json!(false))]);
}

fn service(object: &mut Object) {
    object.remove("Namespace");
    add(object, &[("CheckRestart", Json::Null)]);
    each(object, "Checks", |check| add(check, &[("Advertise", json!(""))]));
    each(object, "Connect", |connect| {
        each(connect, "SidecarService", |sidecar| each(sidecar, "Proxy", proxy));
        each(connect, "SidecarTask", |sidecar| {
            each(sidecar, "Resources", resources);
            each(sidecar, "LogConfig", logs);
        });
        each(connect, "Gateway", |gateway| each(gateway, "Proxy", gateway_proxy));
    });
}

fn proxy(object: &mut Object) {
    add(object, &[("ExposeConfig", Json::Null)]);
    for expose in ["Expose", "ExposeConfig"] {
        each(object, expose, |expose| add(expose, &[("Path", Json::Null)]));
    }
}

fn gateway_proxy(object: &mut Object) {
    if let Some(Json::Object(addresses)) = object.get_mut("EnvoyGatewayBindAddresses") {
        for address in addresses.values_mut().filter_map(Json::as_object_mut) {
            add(address, &[("Name", json!(""))]);
        }
    }
}

//! Where the document differs from the file: sugar, labels, splits and defaults that belong to the syntax.

use serde_json::{Value as Json, json};

use super::schema::Object;
use crate::diagnostic::Fault;
use crate::hcl::Block;
use crate::validate::is_port_label;

/// Comparisons with a spelling of their own: `version = "> 1"` for `operator = "version"` and `value = "> 1"`.
const VALUE_SUGAR: [&str; 6] =
    ["version", "semver", "regexp", "set_contains", "set_contains_all", "set_contains_any"];

pub(super) fn constraint(object: &mut Object, block: &Block) -> Result<(), Fault> {
    let sugared: Vec<String> = object.keys().filter(|key| key.starts_with('~')).cloned().collect();
    if sugared.len() > 1 {
        let names: Vec<&str> = sugared.iter().map(|key| &key[1..]).collect();
        let message = format!("a {} has one comparison, found {}", block.kind.text, names.join(" and "));
        return Err(Fault::new(block.header, message));
    }
    for key in sugared {
        let operator = &key[1..];
        let value = object.remove(&key).unwrap_or_default();
        if VALUE_SUGAR.contains(&operator) {
            object.insert("RTarget".to_string(), value);
        } else if operator == "distinct_property" {
            object.insert("LTarget".to_string(), value);
        } else if operator == "distinct_hosts" {
            object.insert("RTarget".to_string(), json!(value.to_string()));
        } else if value == json!(false) {
            return Err(Fault::new(block.header, format!("{operator} = false has no meaning")));
        }
        object.insert("Operand".to_string(), json!(operator));
    }
    let operand = object.entry("Operand").or_insert_with(|| json!("="));
    if operand == "" {
        *operand = json!("=");
    }
    Ok(())
}

pub(super) fn port(object: &mut Object, block: &Block) -> Result<(), Fault> {
    let label = object.get("Label").and_then(Json::as_str).unwrap_or_default();
    if !is_port_label(label) {
        let fault = Fault::new(block.header, format!("{label:?} is not a port label"));
        return Err(fault.hint("use letters, digits, _, - and ."));
    }
    Ok(())
}

/// Ports with a number of their own are reserved, the others are handed out.
pub(super) fn network(object: &mut Object, _: &Block) -> Result<(), Fault> {
    let Some(Json::Array(ports)) = object.remove("DynamicPorts") else { return Ok(()) };
    let has_number = |port: &Json| port.get("Value").and_then(Json::as_i64).is_some_and(|value| value > 0);
    let (numbered, dynamic): (Vec<Json>, Vec<Json>) = ports.into_iter().partition(has_number);
    if let Some(Json::Array(given)) = object.get_mut("ReservedPorts") {
        given.extend(numbered);
    } else {
        object.insert("ReservedPorts".to_string(), Json::Array(numbered));
    }
    object.insert("DynamicPorts".to_string(), Json::Array(dynamic));
    Ok(())
}

fn default(object: &mut Object, defaults: &[(&str, Json)]) {
    for (name, value) in defaults {
        object.entry(*name).or_insert_with(|| value.clone());
    }
}

pub(super) fn template(object: &mut Object, _: &Block) -> Result<(), Fault> {
    let splay = json!(5_000_000_000_i64);
    let mode = ("ChangeMode", json!("restart"));
    default(object, &[mode, ("Perms", json!("0644")), ("Splay", splay), ("ErrMissingKey", json!(false))]);
    Ok(())
}

pub(super) fn vault(object: &mut Object, _: &Block) -> Result<(), Fault> {
    default(object, &[("Env", json!(true)), ("DisableFile", json!(false)), ("ChangeMode", json!("restart"))]);
    Ok(())
}

pub(super) fn group_scaling(object: &mut Object, block: &Block) -> Result<(), Fault> {
    default(object, &[("Type", json!("horizontal"))]);
    if object["Type"] != "horizontal" {
        return Err(Fault::new(block.header, "the scaling of a group is of type horizontal"));
    }
    Ok(())
}

pub(super) fn task_scaling(object: &mut Object, block: &Block) -> Result<(), Fault> {
    let kind = match object.remove("~label").as_ref().and_then(Json::as_str) {
        Some("cpu") => "vertical_cpu",
        Some("mem") => "vertical_mem",
        _ => return Err(Fault::new(block.header, "the scaling of a task is labelled \"cpu\" or \"mem\"")),
    };
    object.insert("Type".to_string(), json!(kind));
    Ok(())
}

/// A link may carry its label as a label or as an attribute.
pub(super) fn link(object: &mut Object, block: &Block) -> Result<(), Fault> {
    if let Some(label) = block.labels.first() {
        default(object, &[("Label", json!(label.text))]);
    }
    Ok(())
}

/// The first identity without a name, or named `default`, is the task's own.
pub(super) fn task(object: &mut Object, _: &Block) -> Result<(), Fault> {
    let Some(Json::Array(identities)) = object.get_mut("Identities") else { return Ok(()) };
    let unnamed =
        |identity: &Json| matches!(identity.get("Name").and_then(Json::as_str), None | Some("" | "default"));
    if let Some(at) = identities.iter().position(unnamed) {
        let identity = identities.remove(at);
        object.insert("Identity".to_string(), identity);
    }
    Ok(())
}

pub(super) fn job(object: &mut Object, _: &Block) -> Result<(), Fault> {
    let label = object.remove("~label").unwrap_or_default();
    default(object, &[("ID", label.clone()), ("Name", label)]);
    let mut groups = lone_tasks(object);
    groups.extend(take_list(object, "TaskGroups"));
    let vault = object.remove("~vault");
    let secrets = take_list(object, "~secrets");
    for group in groups.iter_mut().filter_map(Json::as_object_mut) {
        let vault = group.remove("~vault").or_else(|| vault.clone());
        let secrets = [secrets.clone(), take_list(group, "~secrets")].concat();
        inherit(group, vault, &secrets);
    }
    object.insert("TaskGroups".to_string(), Json::Array(groups));
    Ok(())
}

/// A task directly in the job is a group of its own, of the same name.
fn lone_tasks(object: &mut Object) -> Vec<Json> {
    let group = |task: Json| json!({ "Name": task["Name"], "Tasks": [task] });
    take_list(object, "~tasks").into_iter().map(group).collect()
}

/// The nearest vault block wins; secrets add up.
fn inherit(group: &mut Object, vault: Option<Json>, secrets: &[Json]) {
    let Some(Json::Array(tasks)) = group.get_mut("Tasks") else { return };
    for task in tasks.iter_mut().filter_map(Json::as_object_mut) {
        if let Some(vault) = &vault {
            task.entry("Vault").or_insert_with(|| vault.clone());
        }
        if !secrets.is_empty() {
            let own = take_list(task, "Secrets");
            task.insert("Secrets".to_string(), Json::Array([secrets, &own].concat()));
        }
    }
}

fn take_list(object: &mut Object, name: &str) -> Vec<Json> {
    match object.remove(name) {
        Some(Json::Array(items)) => items,
        _ => Vec::new(),
    }
}

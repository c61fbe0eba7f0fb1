//! The environment of a task, and the variables its texts may name.

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::document::{Allocation, Job, Map, Node, PortMapping, Task, TaskGroup};
use serde_json::Value;

use crate::driver::FsIsolation;
use crate::layout::{AllocDir, TaskDir};
use crate::network::Status;

/// What the environment is made of.
#[derive(Debug)]
pub struct Sources<'a> {
    pub alloc: &'a Allocation,
    pub job: &'a Job,
    pub group: &'a TaskGroup,
    pub task: &'a Task,
    pub node: &'a Node,
    pub region: &'a str,
    pub alloc_dir: &'a AllocDir,
    pub task_dir: &'a TaskDir,
    /// What the task sees of the file system.
    pub isolation: FsIsolation,
    /// What the task inherits from the agent; everything else overrides it.
    pub inherited: &'a BTreeMap<String, String>,
}

/// The environment of one start of a task.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    pub variables: BTreeMap<String, String>,
    /// `node.*`, `attr.*` and `meta.*`: usable in texts, not handed to the process.
    node: BTreeMap<String, String>,
    /// `secret.<block>.<key>`: the same.
    secrets: BTreeMap<String, String>,
}

/// Variables of the agent that no task inherits: credentials.
const DENIED: [&str; 18] = [
    "CONSUL_TOKEN",
    "CONSUL_HTTP_TOKEN",
    "CONSUL_HTTP_TOKEN_FILE",
    "NOMAD_TOKEN",
    "VAULT_TOKEN",
    "CONSUL_LICENSE",
    "NOMAD_LICENSE",
    "VAULT_LICENSE",
    "CONSUL_LICENSE_PATH",
    "NOMAD_LICENSE_PATH",
    "VAULT_LICENSE_PATH",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_METADATA_URL",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_OAUTH_ACCESS_TOKEN",
    "SOJOURN_TOKEN",
];

/// What of `environment` tasks may inherit: all but credentials of the agent.
pub fn inheritable(environment: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    environment.filter(|(name, _)| !DENIED.contains(&name.as_str())).collect()
}

impl Environment {
    pub fn build(sources: &Sources<'_>) -> Environment {
        let mut variables = BTreeMap::new();
        names(&mut variables, sources);
        directories(&mut variables, sources);
        limits(&mut variables, sources);
        ports(&mut variables, sources);
        let mut environment =
            Environment { variables, node: node_variables(sources), secrets: BTreeMap::new() };
        environment.add_meta(sources);
        // An image has an environment of its own.
        let inherits = sources.isolation != FsIsolation::Image;
        for (name, value) in sources.inherited.iter().filter(|_| inherits) {
            environment.variables.entry(name.clone()).or_insert_with(|| value.clone());
        }
        for (name, value) in &sources.task.env {
            let value = environment.replace(value);
            environment.variables.insert(clean(name), value);
        }
        environment
    }

    /// Job, group and task meta, each overriding the one before, under their own and their upper-case name.
    fn add_meta(&mut self, sources: &Sources<'_>) {
        let mut meta: BTreeMap<&str, &str> = BTreeMap::new();
        if let Some(parameters) = &sources.job.parameterized_job {
            meta.extend(parameters.meta_optional.iter().map(|key| (key.as_str(), "")));
        }
        for layer in [&sources.job.meta, &sources.group.meta, &sources.task.meta] {
            meta.extend(layer.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        }
        for (key, value) in meta {
            let value = self.replace(value);
            self.variables.insert(clean(&format!("NOMAD_META_{}", key.to_uppercase())), value.clone());
            self.variables.insert(clean(&format!("NOMAD_META_{key}")), value);
        }
    }

    /// Lets texts name these, as `secret.<block>.<key>`, and fills them into the variables that the task's own `env` block
    /// sets: what others have given it, such as metadata of a dispatch, is not looked through for them.
    pub fn add_secrets(&mut self, secrets: BTreeMap<String, String>, task: &Task) {
        self.secrets.extend(secrets);
        for name in task.env.keys().map(|name| clean(name)) {
            if let Some(value) = self.variables.get(&name).filter(|value| value.contains("${secret.")) {
                let value = self.replace(value);
                self.variables.insert(name, value);
            }
        }
    }

    /// `text` with each known `${name}` replaced; unknown names stay as they are.
    pub fn replace(&self, text: &str) -> String {
        self.expand(text, false)
    }

    /// A driver's configuration with all its texts replaced; `$${` becomes a literal `${` there.
    pub fn replace_config(&self, config: &Map<String, Value>) -> BTreeMap<String, Value> {
        config.iter().map(|(key, value)| (key.clone(), self.replace_value(value))).collect()
    }

    fn replace_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.expand(text, true)),
            Value::Array(items) => items.iter().map(|item| self.replace_value(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (key.clone(), self.replace_value(value))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn expand(&self, text: &str, escapes: bool) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let Some(length) = rest[start..].find('}') else { break };
            let reference = &rest[start..=start + length];
            if escapes && rest[..start].ends_with('$') {
                out.push_str(&rest[..start - 1]);
                out.push_str(reference);
            } else {
                out.push_str(&rest[..start]);
                out.push_str(self.lookup(&reference[2..length]).unwrap_or(reference));
            }
            rest = &rest[start + length + 1..];
        }
        out.push_str(rest);
        out
    }

    /// A variable, or what else a text may name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.lookup(name)
    }

    fn lookup(&self, name: &str) -> Option<&str> {
        let name = name.trim();
        let quoted = name.strip_prefix("env[\"").and_then(|rest| rest.strip_suffix("\"]"));
        let short = name.strip_prefix("node.").filter(|rest| is_nested(rest));
        let name = quoted.or(short).unwrap_or(name);
        let found = self.variables.get(name).or_else(|| self.node.get(name));
        found.or_else(|| self.secrets.get(name)).map(String::as_str)
    }
}

/// `node.attr.x` and `node.meta.x` are longer spellings of `attr.x` and `meta.x`.
fn is_nested(name: &str) -> bool {
    name.starts_with("attr.") || name.starts_with("meta.")
}

fn names(variables: &mut BTreeMap<String, String>, sources: &Sources<'_>) {
    let (alloc, job) = (sources.alloc, sources.job);
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let mut set = |name: &str, value: String| variables.insert(name.to_string(), value);
    set("NOMAD_ALLOC_ID", alloc.id.clone());
    set("NOMAD_SHORT_ALLOC_ID", alloc.id.chars().take(8).collect());
    set("NOMAD_ALLOC_NAME", alloc.name.clone());
    if let Some(index) = alloc_index(&alloc.name) {
        set("NOMAD_ALLOC_INDEX", index.to_string());
    }
    set("NOMAD_TASK_NAME", sources.task.name.clone());
    set("NOMAD_GROUP_NAME", alloc.task_group.clone());
    set("NOMAD_JOB_ID", alloc.job_id.clone());
    set("NOMAD_JOB_NAME", text(&job.name));
    if let Some(parent) = job.parent_id.as_ref().filter(|parent| !parent.is_empty()) {
        set("NOMAD_JOB_PARENT_ID", parent.clone());
    }
    set("NOMAD_DC", sources.node.datacenter.clone());
    set("NOMAD_NAMESPACE", alloc.namespace.clone());
    set("NOMAD_REGION", sources.region.to_string());
    if !sources.node.cgroup_parent.is_empty() {
        set("NOMAD_PARENT_CGROUP", sources.node.cgroup_parent.clone());
    }
}

/// `i` of a name like `job.group[i]`.
fn alloc_index(name: &str) -> Option<u64> {
    name.strip_suffix(']')?.rsplit_once('[')?.1.parse().ok()
}

fn directories(variables: &mut BTreeMap<String, String>, sources: &Sources<'_>) {
    let paths = match sources.isolation {
        FsIsolation::None => {
            [sources.alloc_dir.shared(), sources.task_dir.local.clone(), sources.task_dir.secrets.clone()]
        }
        // As the task sees them below its own root.
        FsIsolation::Chroot | FsIsolation::Image => ["/alloc", "/local", "/secrets"].map(PathBuf::from),
    };
    for (name, path) in ["NOMAD_ALLOC_DIR", "NOMAD_TASK_DIR", "NOMAD_SECRETS_DIR"].into_iter().zip(paths) {
        variables.insert(name.to_string(), path.display().to_string());
    }
}

fn limits(variables: &mut BTreeMap<String, String>, sources: &Sources<'_>) {
    let granted = sources.alloc.allocated_resources.as_ref();
    let Some(granted) = granted.and_then(|all| all.tasks.get(&sources.task.name)) else { return };
    let mut set = |name: &str, value: String| variables.insert(name.to_string(), value);
    set("NOMAD_CPU_LIMIT", granted.cpu.cpu_shares.to_string());
    set("NOMAD_MEMORY_LIMIT", granted.memory.memory_mb.to_string());
    if granted.memory.memory_max_mb > 0 {
        set("NOMAD_MEMORY_MAX_LIMIT", granted.memory.memory_max_mb.to_string());
    }
    if !granted.cpu.reserved_cores.is_empty() {
        set("NOMAD_CPU_CORES", ranges(&granted.cpu.reserved_cores));
    }
}

/// `3-5,8` for the cores 3, 4, 5 and 8.
pub fn ranges(numbers: &[u16]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut runs: Vec<(u16, u16)> = Vec::new();
    for number in sorted {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let texts: Vec<String> = runs
        .into_iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    texts.join(",")
}

fn ports(variables: &mut BTreeMap<String, String>, sources: &Sources<'_>) {
    let Some(granted) = &sources.alloc.allocated_resources else { return };
    for port in &group_ports(sources.alloc) {
        let inside = if port.to > 0 { port.to } else { port.value };
        let address = join(&port.host_ip, port.value);
        for (prefix, value) in [
            ("NOMAD_IP_", port.host_ip.clone()),
            ("NOMAD_HOST_IP_", port.host_ip.clone()),
            ("NOMAD_PORT_", inside.to_string()),
            ("NOMAD_ALLOC_PORT_", inside.to_string()),
            ("NOMAD_HOST_PORT_", port.value.to_string()),
            ("NOMAD_ADDR_", address.clone()),
            ("NOMAD_HOST_ADDR_", address.clone()),
        ] {
            variables.insert(clean(&format!("{prefix}{}", port.label)), value);
        }
    }
    for (name, task) in &granted.tasks {
        for network in &task.networks {
            for port in network.reserved_ports.iter().chain(&network.dynamic_ports.0) {
                let own = name == &sources.task.name;
                legacy_port(variables, (!own).then_some(name.as_str()), &network.ip, &port.label, port.value);
            }
        }
    }
}

/// Where ports are inside, for groups with a network of their own.
pub fn inside(alloc: &Allocation, status: &Status) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    if status.address.is_empty() {
        return variables;
    }
    for port in &group_ports(alloc) {
        let inside = if port.to > 0 { port.to } else { port.value };
        for (prefix, value) in [
            ("NOMAD_ALLOC_INTERFACE_", status.interface.clone()),
            ("NOMAD_ALLOC_IP_", status.address.clone()),
            ("NOMAD_ALLOC_ADDR_", join(&status.address, inside)),
        ] {
            variables.insert(format!("{prefix}{}", port.label), value);
        }
    }
    variables
}

/// A port of a task's own network; those of siblings carry the sibling's name.
fn legacy_port(out: &mut BTreeMap<String, String>, sibling: Option<&str>, ip: &str, label: &str, value: i64) {
    let label = sibling.map_or(label.to_string(), |task| format!("{task}_{label}"));
    let mut set = |prefix: &str, value: String| out.insert(clean(&format!("{prefix}{label}")), value);
    set("NOMAD_IP_", ip.to_string());
    set("NOMAD_PORT_", value.to_string());
    set("NOMAD_ADDR_", join(ip, value));
    if sibling.is_none() {
        set("NOMAD_HOST_PORT_", value.to_string());
    }
}

/// The ports of the group: from the mapping, or from the networks where a server sent no mapping.
pub fn group_ports(alloc: &Allocation) -> Vec<PortMapping> {
    let Some(granted) = &alloc.allocated_resources else { return Vec::new() };
    if !granted.shared.ports.is_empty() {
        return granted.shared.ports.0.clone();
    }
    let mut ports = Vec::new();
    for network in &granted.shared.networks {
        for port in network.reserved_ports.iter().chain(&network.dynamic_ports.0) {
            ports.push(PortMapping {
                label: port.label.clone(),
                value: port.value,
                to: port.to,
                host_ip: network.ip.clone(),
            });
        }
    }
    ports
}

fn join(ip: &str, port: i64) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

/// Variable names that carry a label keep only what shells can spell.
fn clean(name: &str) -> String {
    const LABELLED: [&str; 5] =
        ["NOMAD_ADDR_", "NOMAD_IP_", "NOMAD_PORT_", "NOMAD_HOST_PORT_", "NOMAD_META_"];
    if !LABELLED.iter().any(|prefix| name.starts_with(prefix)) {
        return name.to_string();
    }
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

fn node_variables(sources: &Sources<'_>) -> BTreeMap<String, String> {
    let node = sources.node;
    let mut variables: BTreeMap<String, String> = [
        ("node.unique.id", &node.id),
        ("node.unique.name", &node.name),
        ("node.datacenter", &node.datacenter),
        ("node.class", &node.node_class),
        ("node.pool", &node.node_pool),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_string(), value.clone()))
    .collect();
    variables.insert("node.region".to_string(), sources.region.to_string());
    variables.extend(node.attributes.iter().map(|(key, value)| (format!("attr.{key}"), value.clone())));
    variables.extend(node.meta.iter().map(|(key, value)| (format!("meta.{key}"), value.clone())));
    variables
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const ID: &str = "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01";

    fn environment(alloc: Value, job: Value, task: Value) -> Environment {
        let mut alloc: Allocation = serde_json::from_value(alloc).unwrap();
        alloc.id = ID.into();
        let job: Job = serde_json::from_value(job).unwrap();
        let task: Task = serde_json::from_value(task).unwrap();
        let node: Node = serde_json::from_value(serde_json::json!({
            "ID": "n1", "Name": "alpha", "Datacenter": "dc1",
            "Attributes": {"kernel.name": "linux"}, "Meta": {"rack": "r7"}
        }))
        .unwrap();
        let alloc_dir = AllocDir::new(Path::new("/data"), ID).unwrap();
        let inherited = inheritable(
            [("PATH", "/bin"), ("NOMAD_TOKEN", "x")].map(|(k, v)| (k.into(), v.into())).into_iter(),
        );
        Environment::build(&Sources {
            alloc: &alloc,
            job: &job,
            group: &TaskGroup::default(),
            task: &task,
            node: &node,
            region: "global",
            alloc_dir: &alloc_dir,
            task_dir: &alloc_dir.task(&task.name),
            isolation: FsIsolation::None,
            inherited: &inherited,
        })
    }

    #[test]
    fn a_task_gets_its_identity_and_its_directories() {
        let env = environment(
            serde_json::json!({
                "Name": "api.web[3]", "JobID": "api", "TaskGroup": "web", "Namespace": "default",
                "AllocatedResources": {
                    "Tasks": {
                        "web": {"Cpu": {"CpuShares": 100, "ReservedCores": [5, 3, 4, 8]}, "Memory": {"MemoryMB": 64}},
                        "old": {"Networks": [{"IP": "10.0.0.2", "DynamicPorts": [{"Label": "db", "Value": 99}]}]}
                    },
                    "Shared": {"Ports": [{"Label": "my-port", "Value": 20100, "To": 80, "HostIP": "10.0.0.1"}]}
                }
            }),
            serde_json::json!({"Name": "api", "Meta": {"tier-x": "one"}}),
            serde_json::json!({"Name": "web", "Meta": {"tier-x": "two"}, "Env": {"WHERE": "${node.datacenter}/${attr.kernel.name}"}}),
        );
        let cases = [
            ("NOMAD_ALLOC_INDEX", "3"),
            ("NOMAD_SHORT_ALLOC_ID", "5d16e7fe"),
            ("NOMAD_CPU_CORES", "3-5,8"),
            ("NOMAD_MEMORY_LIMIT", "64"),
            ("NOMAD_META_tier_x", "two"),
            ("NOMAD_META_TIER_X", "two"),
            ("NOMAD_PORT_my_port", "80"),
            ("NOMAD_HOST_PORT_my_port", "20100"),
            ("NOMAD_ADDR_my_port", "10.0.0.1:20100"),
            ("NOMAD_ADDR_old_db", "10.0.0.2:99"),
            ("NOMAD_TASK_DIR", "/data/5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01/web/local"),
            ("WHERE", "dc1/linux"),
            ("PATH", "/bin"),
        ];
        for (name, value) in cases {
            assert_eq!(env.variables.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert!(!env.variables.contains_key("NOMAD_TOKEN"), "credentials of the agent stay with it");
    }

    #[test]
    fn known_names_are_replaced_and_others_stay() {
        let env = environment(
            serde_json::json!({"Name": "a.b[0]"}),
            serde_json::json!({}),
            serde_json::json!({"Name": "t", "Env": {"A": "1"}}),
        );
        let cases = [
            ("${A}${meta.rack}", "1r7"),
            ("x${nope}y", "x${nope}y"),
            ("${env[\"A\"]}", "1"),
            ("${node.attr.kernel.name}", "linux"),
            ("${node.unique.name}", "alpha"),
            ("open ${A", "open ${A"),
            ("$A ${}", "$A ${}"),
        ];
        for (text, expected) in cases {
            assert_eq!(env.replace(text), expected, "{text}");
        }
        let config: Map<String, Value> =
            [("args".to_string(), serde_json::json!(["$${A}", "${A}", 5]))].into_iter().collect();
        assert_eq!(env.replace_config(&config)["args"], serde_json::json!(["${A}", "1", 5]));
    }
}

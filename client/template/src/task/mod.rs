//! The functions of consul-template, for templates of tasks.

mod collections;
mod consul;
mod encode;
mod math;
mod nomad;
mod text;
mod vault;
mod write;
mod yaml;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::builtin::{Outcome, equal};
use crate::sprig::{Given, date};
use crate::value::Value;

/// Where something is looked for; the namespace and the region of the task unless given.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub namespace: Option<String>,
    pub region: Option<String>,
}

/// What a template can read from the servers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dependency {
    /// A variable: the document of the HTTP API.
    Variable {
        path: String,
        place: Place,
    },
    /// Variables below a path: a list of their metadata.
    Variables {
        prefix: String,
        place: Place,
    },
    /// The instances of a service, all of them or so many, the same ones for the same key.
    Service {
        name: String,
        choose: Option<(u32, String)>,
        place: Place,
    },
    /// The names of all services: the list of the HTTP API.
    Services {
        place: Place,
    },
    Consul(ConsulRead),
    Vault(VaultRead),
}

/// What a template can read from Consul.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConsulRead {
    pub kind: ConsulKind,
    /// Of a key, a service or a node; the prefix of keys, with a slash at its end.
    pub name: String,
    /// Of instances of a service; empty for all.
    pub tag: String,
    /// Empty for that of the Consul agent.
    pub datacenter: String,
    /// The node that instances are ordered by their distance to.
    pub near: String,
    /// Only instances whose checks pass.
    pub passing_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConsulKind {
    Key,
    Keys,
    Service,
    Services,
    Nodes,
    Node,
}

impl fmt::Display for ConsulRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ConsulKind::Key => "kv.block",
            ConsulKind::Keys => "kv.list",
            ConsulKind::Service => "health.service",
            ConsulKind::Services => "catalog.services",
            ConsulKind::Nodes => "catalog.nodes",
            ConsulKind::Node => "catalog.node",
        };
        let tag = if self.tag.is_empty() { String::new() } else { format!("{}.", self.tag) };
        let at = if self.datacenter.is_empty() { String::new() } else { format!("@{}", self.datacenter) };
        let passing = if self.kind == ConsulKind::Service && self.passing_only { "|passing" } else { "" };
        match format!("{tag}{}{at}{passing}", self.name) {
            what if what.is_empty() => write!(f, "{kind}"),
            what => write!(f, "{kind}({what})"),
        }
    }
}

/// What a template can read from Vault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VaultRead {
    pub kind: VaultKind,
    /// Without a slash at either end. The `data` of a key-value store of version 2 may be left out.
    pub path: String,
    /// What is written, to get an answer.
    pub data: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VaultKind {
    Read,
    List,
    Write,
    /// A certificate that is issued.
    Certificate,
}

impl fmt::Display for VaultRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            VaultKind::Read => "vault.read",
            VaultKind::List => "vault.list",
            VaultKind::Write => "vault.write",
            VaultKind::Certificate => "vault.pki",
        };
        write!(f, "{kind}({})", self.path)
    }
}

/// As consul-template calls them.
impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |place: &Place| match (&place.namespace, &place.region) {
            (None, None) => String::new(),
            (namespace, region) => {
                let namespace = namespace.as_deref().unwrap_or_default();
                region.as_ref().map_or(format!("@{namespace}"), |region| format!("@{namespace}.{region}"))
            }
        };
        match self {
            Dependency::Variable { path, place } => write!(f, "nomad.var.block({path}{})", at(place)),
            Dependency::Variables { prefix, place } => write!(f, "nomad.var.list({prefix}{})", at(place)),
            Dependency::Service { name, choose: None, place } => {
                write!(f, "nomad.service({name}{})", at(place))
            }
            Dependency::Service { name, choose: Some((count, key)), place } => {
                write!(f, "nomad.service({name}{}:{count}|{key})", at(place))
            }
            Dependency::Services { place } => write!(f, "nomad.services{}", at(place)),
            Dependency::Consul(read) => write!(f, "{read}"),
            Dependency::Vault(read) => write!(f, "{read}"),
        }
    }
}

/// What is known of a dependency.
#[derive(Clone, Debug, PartialEq)]
pub enum Fetched {
    /// Nobody has answered yet.
    Pending,
    /// There is no such thing.
    Absent,
    There(serde_json::Value),
    /// It cannot be read, now or later.
    Failed(String),
}

/// What templates of tasks read.
pub trait Source {
    fn fetch(&self, dependency: &Dependency) -> Fetched;

    /// A variable of the environment.
    fn env(&self, name: &str) -> Option<String>;

    /// # Errors
    /// Why the file is not read.
    fn file(&self, path: &str) -> Result<Vec<u8>, String>;

    /// In nanoseconds of the epoch.
    fn now(&self) -> i64;
}

/// One rendering of a template.
pub struct Session<'a> {
    source: &'a dyn Source,
    denied: &'a BTreeSet<String>,
    missing: RefCell<BTreeSet<Dependency>>,
    scratch: Rc<RefCell<BTreeMap<String, Value>>>,
}

/// What would leave the sandbox, is only good for debugging consul-template, or is of Consul and not built.
const NOT_HERE: [&str; 22] = [
    "byKey",
    "byMeta",
    "byPort",
    "caLeaf",
    "caRoots",
    "connect",
    "datacenters",
    "executeTemplate",
    "explode",
    "exportedServices",
    "importedServices",
    "keyExistsGet",
    "partitions",
    "peerings",
    "plugin",
    "sockaddr",
    "spew_dump",
    "spew_printf",
    "spew_sdump",
    "spew_sprintf",
    "tenancy",
    "writeToFile",
];

const OWN: [&str; 6] = ["env", "envOrDefault", "file", "mustEnv", "scratch", "timestamp"];

/// Who has a function: each group answers `None` for what is not its own.
type Group = fn(&str, &[Value]) -> Option<Outcome>;

const GROUPS: [Group; 4] = [text::call, encode::call, collections::call, math::call];

/// Whether there is such a function, usable here or not. Asked without arguments each group still knows its own names.
pub fn is_known(name: &str) -> bool {
    [NOT_HERE.as_slice(), &OWN, &nomad::NAMES, &consul::NAMES, &vault::NAMES]
        .iter()
        .any(|names| names.contains(&name))
        || GROUPS.iter().any(|group| group(name, &[]).is_some())
}

impl<'a> Session<'a> {
    pub fn new(source: &'a dyn Source, denied: &'a BTreeSet<String>) -> Session<'a> {
        Session { source, denied, missing: RefCell::default(), scratch: Rc::default() }
    }

    /// What was asked for and has not arrived.
    pub fn missing(&self) -> BTreeSet<Dependency> {
        self.missing.borrow().clone()
    }

    pub fn call(&self, name: &str, arguments: &[Value]) -> Outcome {
        let given = Given(arguments);
        match name {
            name if self.denied.contains(name) => Err("function is disabled".to_string()),
            name if NOT_HERE.contains(&name) => Err("this node does not have the function".to_string()),
            "env" => Ok(Value::text(self.source.env(&given.text(0)?).unwrap_or_default())),
            "envOrDefault" => {
                let default = given.text(1)?;
                Ok(Value::text(self.source.env(&given.text(0)?).unwrap_or(default)))
            }
            "mustEnv" => match self.source.env(&given.text(0)?) {
                Some(value) => Ok(Value::text(value)),
                None => Err(format!("environment variable {} is not set", given.text(0)?)),
            },
            "file" => self.source.file(&given.text(0)?).map(Value::from_bytes),
            "timestamp" => self.timestamp(given),
            "scratch" => Ok(Value::Scratch(Rc::clone(&self.scratch))),
            name if consul::NAMES.contains(&name) => consul::call(self, name, given),
            name if vault::NAMES.contains(&name) => vault::call(self, name, given),
            name if nomad::NAMES.contains(&name) => nomad::call(self, name, given),
            name => {
                let found = GROUPS.iter().find_map(|group| group(name, arguments));
                found.unwrap_or_else(|| Err("there is no such function".to_string()))
            }
        }
    }

    /// Now, in UTC.
    fn timestamp(&self, given: Given<'_>) -> Outcome {
        let now = Timestamp::from_nanosecond(self.source.now().into()).map_err(|error| error.to_string())?;
        let layout =
            if given.0.is_empty() { "2006-01-02T15:04:05Z07:00".to_string() } else { given.text(0)? };
        Ok(Value::text(match layout.as_str() {
            "unix" => now.as_second().to_string(),
            layout => date::in_layout(layout, &now.to_zoned(TimeZone::UTC)),
        }))
    }

    /// `None` when it has to be waited for; the rendering goes on, to find what else is needed.
    fn fetch(&self, dependency: Dependency) -> Result<Option<Fetched>, String> {
        match self.source.fetch(&dependency) {
            Fetched::Pending => {
                self.missing.borrow_mut().insert(dependency);
                Ok(None)
            }
            Fetched::Failed(why) => Err(format!("{dependency}: {why}")),
            fetched => Ok(Some(fetched)),
        }
    }

    fn wait_for(&self, dependency: Dependency) {
        self.missing.borrow_mut().insert(dependency);
    }
}

/// `value.name argument`, for values that have methods.
pub fn method(value: &Value, name: &str, arguments: &[Value]) -> Option<Outcome> {
    match (value, name) {
        (Value::Scratch(values), name) => Some(collections::scratch(values, name, Given(arguments))),
        (Value::List(items), "Contains") => Some(
            Given(arguments)
                .value(0)
                .map(|wanted| Value::Bool(items.iter().any(|item| equal(item, wanted).unwrap_or(false)))),
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

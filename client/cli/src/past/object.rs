//! Objects by the names that facts have for them, and their documents.

use std::fmt;
use std::str::FromStr;

use api::ObjectHistory;
use sdk::{Client, Query};
use serde_json::{Map, Value, json};

use crate::call::{Doing, Failure};
use crate::output::OutputStyle;
use crate::resolve::{self, WHOLE_ID};

/// Entries of a page when everything is read.
const PER_PAGE: u32 = 1000;

/// What `cluster` is made of: the name of each list, its path and type, and what its entries are called by.
const LISTS: [(&str, &[&str], &str, Naming); 8] = [
    ("Jobs", &["jobs"], "", Naming::InNamespace("ID")),
    ("Nodes", &["nodes"], "", Naming::By("ID")),
    ("Deployments", &["deployments"], "", Naming::By("ID")),
    ("Namespaces", &["namespaces"], "", Naming::By("Name")),
    ("NodePools", &["node", "pools"], "", Naming::By("Name")),
    ("Variables", &["vars"], "", Naming::InNamespace("Path")),
    ("HostVolumes", &["volumes"], "host", Naming::InNamespace("ID")),
    ("CSIVolumes", &["volumes"], "csi", Naming::InNamespace("ID")),
];

#[derive(Clone, Copy)]
enum Naming {
    By(&'static str),
    InNamespace(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Cluster,
    Job,
    Node,
    Alloc,
    Eval,
    Deployment,
    Variable,
    Namespace,
    NodePool,
    AclPolicy,
    Scheduler,
}

const KINDS: [(&str, Kind); 11] = [
    ("cluster", Kind::Cluster),
    ("job", Kind::Job),
    ("node", Kind::Node),
    ("alloc", Kind::Alloc),
    ("eval", Kind::Eval),
    ("deployment", Kind::Deployment),
    ("var", Kind::Variable),
    ("namespace", Kind::Namespace),
    ("node-pool", Kind::NodePool),
    ("acl-policy", Kind::AclPolicy),
    ("scheduler", Kind::Scheduler),
];

/// `job/web`, `node/3f2a`, `var/db/password`, `scheduler`; `cluster` is everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub kind: Kind,
    /// Empty where there is only one of the kind.
    pub name: String,
}

impl FromStr for Object {
    type Err = String;

    fn from_str(text: &str) -> Result<Object, String> {
        let (word, name) = text.split_once('/').unwrap_or((text, ""));
        let kinds = || KINDS.map(|(word, _)| word).join(", ");
        let found = KINDS.iter().find(|(known, _)| *known == word);
        let (_, kind) = found.ok_or_else(|| {
            format!(
                "\"{text}\" is no object: expected KIND/NAME like job/web, where KIND is one of {}",
                kinds()
            )
        })?;
        let alone = matches!(kind, Kind::Cluster | Kind::Scheduler);
        match (alone, name.is_empty()) {
            (true, false) => Err(format!("\"{text}\": there is only one {word}, without a name")),
            (false, true) => Err(format!("\"{text}\": expected a name after \"{word}/\"")),
            _ => Ok(Object { kind: *kind, name: name.to_string() }),
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or("", |(word, _)| *word);
        if self.name.is_empty() { f.write_str(word) } else { write!(f, "{word}/{}", self.name) }
    }
}

impl Object {
    pub(crate) fn new(kind: Kind, name: &str) -> Object {
        Object { kind, name: name.to_string() }
    }

    /// The same object with its whole id, as `client` knows it.
    ///
    /// # Errors
    /// There is none that begins so, or there are several.
    pub(crate) async fn resolved(self, client: &Client, style: &OutputStyle) -> Result<Object, Failure> {
        if self.name.len() == WHOLE_ID {
            return Ok(self);
        }
        let name = match self.kind {
            Kind::Node => resolve::node(client, style, &self.name).await?.id,
            Kind::Alloc => resolve::allocation(client, style, &self.name).await?.id,
            Kind::Eval => resolve::evaluation(client, style, &self.name).await?.id,
            Kind::Deployment => resolve::deployment(client, style, &self.name).await?.id,
            _ => return Ok(self),
        };
        Ok(Object { name, ..self })
    }

    /// The document that the client's moment has; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) async fn document(&self, client: &Client) -> Result<Option<Value>, Failure> {
        let name = self.name.as_str();
        let path: Vec<&str> = match self.kind {
            Kind::Cluster => return cluster(client).await.map(Some),
            Kind::Job => vec!["job", name],
            Kind::Node => vec!["node", name],
            Kind::Alloc => vec!["allocation", name],
            Kind::Eval => vec!["evaluation", name],
            Kind::Deployment => vec!["deployment", name],
            Kind::Variable => std::iter::once("var").chain(name.split('/')).collect(),
            Kind::Namespace => vec!["namespace", name],
            Kind::NodePool => vec!["node", "pool", name],
            Kind::AclPolicy => vec!["acl", "policy", name],
            Kind::Scheduler => vec!["operator", "scheduler", "configuration"],
        };
        match client.document(&path, Query::new()).await {
            Ok(answer) => Ok(Some(answer.value)),
            Err(error) if error.status() == Some(404) => Ok(None),
            Err(error) => Err(error).doing(&format!("querying {self}")),
        }
    }

    /// The facts about it, as the client's moment knows them.
    ///
    /// # Errors
    /// They cannot be read, or there are none.
    pub(crate) async fn history(&self, client: &Client) -> Result<ObjectHistory, Failure> {
        self.facts(client, Query::new()).await
    }

    /// The same, with what kept facts say that the object was.
    ///
    /// # Errors
    /// As [`Object::history`].
    pub(crate) async fn history_with_documents(&self, client: &Client) -> Result<ObjectHistory, Failure> {
        self.facts(client, Query::new().flag("documents", self.kind == Kind::Job)).await
    }

    async fn facts(&self, client: &Client, query: Query) -> Result<ObjectHistory, Failure> {
        let kind = match self.kind {
            Kind::Job => "job",
            Kind::Node => "node",
            Kind::Eval => "evaluation",
            Kind::Deployment => "deployment",
            _ => {
                let why = format!("{self}: expected a job, a node, an evaluation or a deployment");
                return Err(anyhow::anyhow!(why).into());
            }
        };
        let history = client.object_history(kind, &self.name, query).await;
        history.doing(&format!("querying the history of {self}"))
    }

    /// The allocations that belong to it; none where it has none of its own.
    ///
    /// # Errors
    /// They cannot be read.
    pub(crate) async fn allocations(&self, client: &Client) -> Result<Vec<Value>, Failure> {
        let name = self.name.as_str();
        let (path, query) = match self.kind {
            Kind::Cluster => (vec!["allocations"], Query::new().namespace("*")),
            Kind::Job => (vec!["job", name, "allocations"], Query::new().flag("all", true)),
            Kind::Node => (vec!["node", name, "allocations"], Query::new()),
            _ => return Ok(Vec::new()),
        };
        everything(client, &path, query).await
    }
}

/// All lists of a cluster as one document: the entries of each by name.
async fn cluster(client: &Client) -> Result<Value, Failure> {
    let mut lists = Map::new();
    for (list, path, kind, naming) in LISTS {
        let mut entries = Map::new();
        for entry in everything(client, path, Query::new().namespace("*").with("type", kind)).await? {
            let text = |field: &str| entry[field].as_str().unwrap_or_default().to_string();
            let name = match naming {
                Naming::By(field) => text(field),
                Naming::InNamespace(field) => format!("{}/{}", text("Namespace"), text(field)),
            };
            entries.insert(name, entry);
        }
        lists.insert(list.to_string(), Value::Object(entries));
    }
    Ok(Value::Object(lists))
}

/// A list, page by page. Nothing where the caller may not see any.
async fn everything(client: &Client, path: &[&str], query: Query) -> Result<Vec<Value>, Failure> {
    let (mut entries, mut next) = (Vec::new(), String::new());
    loop {
        let page = query.clone().with("per_page", PER_PAGE).with("next_token", &next);
        let answer = match client.document(path, page).await {
            Ok(answer) => answer,
            Err(error) if matches!(error.status(), Some(403 | 404)) => return Ok(Vec::new()),
            Err(error) => return Err(error).doing(&format!("querying {}", path.join("/"))),
        };
        if let Value::Array(found) = answer.value {
            entries.extend(found);
        }
        match answer.next_token {
            Some(token) => next = token,
            None => return Ok(entries),
        }
    }
}

/// A document with what conditions ask for besides: whether it is there, and how many of its allocations are in which
/// state. A cluster has these of its nodes and jobs too.
pub(crate) fn with_counts(object: &Object, document: Option<Value>, allocations: &[Value]) -> Value {
    let exists = document.is_some();
    let mut document = match document {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    document.insert("Exists".to_string(), json!(exists));
    document.insert("Allocations".to_string(), counted(allocations.iter(), "ClientStatus"));
    if object.kind == Kind::Cluster {
        for list in ["Nodes", "Jobs"] {
            let entries = document.get(list).and_then(Value::as_object).into_iter().flat_map(Map::values);
            let counts = counted(entries, "Status");
            document.insert(format!("{list}By"), counts);
        }
    }
    Value::Object(document)
}

/// `{"Total": 3, "running": 2, "failed": 1}`.
fn counted<'a>(entries: impl Iterator<Item = &'a Value>, field: &str) -> Value {
    let mut counts = Map::from_iter([("Total".to_string(), json!(0))]);
    for entry in entries {
        for name in ["Total", entry[field].as_str().unwrap_or_default()] {
            let count = counts.get(name).and_then(Value::as_u64).unwrap_or(0);
            counts.insert(name.to_string(), json!(count + 1));
        }
    }
    Value::Object(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_as_facts_name_them() {
        for text in ["job/web", "node/3f2a", "var/db/password", "scheduler", "cluster"] {
            assert_eq!(text.parse::<Object>().unwrap().to_string(), text);
        }
        let wrong = |text: &str| text.parse::<Object>().unwrap_err();
        assert!(wrong("jobs/web").contains("KIND is one of cluster, job, node"), "{}", wrong("jobs/web"));
        assert_eq!(wrong("job"), "\"job\": expected a name after \"job/\"");
        assert_eq!(wrong("cluster/x"), "\"cluster/x\": there is only one cluster, without a name");
    }

    #[test]
    fn what_conditions_ask_for_is_counted() {
        let cluster = Object::new(Kind::Cluster, "");
        let document = json!({"Nodes": {"a": {"Status": "ready"}, "b": {"Status": "down"}}, "Jobs": {}});
        let allocs = [json!({"ClientStatus": "running"}), json!({"ClientStatus": "running"})];
        let counted = with_counts(&cluster, Some(document), &allocs);
        assert_eq!(counted["NodesBy"], json!({"Total": 2, "ready": 1, "down": 1}));
        assert_eq!(counted["Allocations"], json!({"Total": 2, "running": 2}));
        assert_eq!(with_counts(&cluster, None, &[])["Exists"], json!(false));
    }
}

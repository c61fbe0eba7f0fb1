//! What became of allocations between two moments.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// One allocation that is not what it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "Change", rename_all_fields = "PascalCase")]
pub(crate) enum AllocationChange {
    Gained {
        name: String,
        job: String,
        id: String,
        node: String,
    },
    Lost {
        name: String,
        job: String,
        id: String,
        node: String,
        status: String,
    },
    /// Another one took its place.
    Replaced {
        name: String,
        job: String,
        id: String,
        node: String,
        by: String,
        new_node: String,
    },
    Changed {
        name: String,
        job: String,
        id: String,
        from: String,
        to: String,
    },
}

struct Known<'a>(&'a Value);

impl Known<'_> {
    fn text(&self, field: &str) -> String {
        self.0[field].as_str().unwrap_or_default().to_string()
    }

    fn job(&self) -> String {
        format!("{}/{}", self.text("Namespace"), self.text("JobID"))
    }

    fn node(&self) -> String {
        let name = self.text("NodeName");
        if name.is_empty() { self.text("NodeID") } else { name }
    }

    /// It runs, or is to.
    fn lives(&self) -> bool {
        self.text("DesiredStatus") == "run"
            && matches!(self.text("ClientStatus").as_str(), "pending" | "running" | "unknown")
    }
}

/// What differs between two lists of allocations: the living ones, by what became of them.
pub(crate) fn changes(before: &[Value], after: &[Value]) -> Vec<AllocationChange> {
    let then: BTreeMap<String, Known<'_>> = by_id(before);
    let now: BTreeMap<String, Known<'_>> = by_id(after);
    let new = |id: &str| now.get(id).filter(|alloc| alloc.lives() && !then.contains_key(id));
    let mut changes = Vec::new();
    let mut replacements = Vec::new();
    for (id, was) in then.iter().filter(|(_, was)| was.lives()) {
        let is = now.get(id);
        let (name, job, id, node) = (was.text("Name"), was.job(), id.clone(), was.node());
        let status = is.map(|is| is.text("ClientStatus")).unwrap_or_default();
        match is {
            Some(is) if is.lives() && status == was.text("ClientStatus") => {}
            Some(is) if is.lives() => {
                changes.push(AllocationChange::Changed {
                    name,
                    job,
                    id,
                    from: was.text("ClientStatus"),
                    to: status,
                });
            }
            _ => {
                let by_link = is.and_then(|is| new(&is.text("NextAllocation")));
                let by_name = || {
                    now.values().find(|other| {
                        let id = other.text("ID");
                        let fits = other.text("Name") == name && other.job() == job;
                        fits && new(&id).is_some() && !replacements.contains(&id)
                    })
                };
                match by_link.or_else(by_name) {
                    Some(other) => {
                        let (by, new_node) = (other.text("ID"), other.node());
                        replacements.push(by.clone());
                        changes.push(AllocationChange::Replaced { name, job, id, node, by, new_node });
                    }
                    None => changes.push(AllocationChange::Lost { name, job, id, node, status }),
                }
            }
        }
    }
    let gained = now.iter().filter(|(id, _)| new(id).is_some() && !replacements.contains(id));
    changes.extend(gained.map(|(id, is)| AllocationChange::Gained {
        name: is.text("Name"),
        job: is.job(),
        id: id.clone(),
        node: is.node(),
    }));
    changes
}

fn by_id(list: &[Value]) -> BTreeMap<String, Known<'_>> {
    list.iter().map(|alloc| (alloc["ID"].as_str().unwrap_or_default().to_string(), Known(alloc))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn alloc(id: &str, name: &str, node: &str, status: &str, next: &str) -> Value {
        let desired = if status == "complete" { "stop" } else { "run" };
        json!({"ID": id, "Name": name, "Namespace": "default", "JobID": "web", "NodeName": node,
            "DesiredStatus": desired, "ClientStatus": status, "NextAllocation": next})
    }

    #[test]
    fn each_living_allocation_has_one_fate() {
        let before = [
            alloc("1", "web[0]", "a", "running", ""),
            alloc("2", "web[1]", "a", "running", ""),
            alloc("3", "web[2]", "a", "running", ""),
            alloc("4", "web[3]", "a", "running", ""),
            alloc("5", "web[9]", "a", "complete", ""),
        ];
        let after = [
            alloc("1", "web[0]", "a", "running", ""),
            alloc("2", "web[1]", "a", "complete", "6"),
            alloc("3", "web[2]", "a", "unknown", ""),
            alloc("4", "web[3]", "a", "lost", ""),
            alloc("6", "web[1]", "b", "running", ""),
            alloc("7", "web[4]", "b", "pending", ""),
        ];
        let job = || "default/web".to_string();
        let text = |text: &str| text.to_string();
        let expected = [
            AllocationChange::Replaced {
                name: text("web[1]"),
                job: job(),
                id: text("2"),
                node: text("a"),
                by: text("6"),
                new_node: text("b"),
            },
            AllocationChange::Changed {
                name: text("web[2]"),
                job: job(),
                id: text("3"),
                from: text("running"),
                to: text("unknown"),
            },
            AllocationChange::Lost {
                name: text("web[3]"),
                job: job(),
                id: text("4"),
                node: text("a"),
                status: text("lost"),
            },
            AllocationChange::Gained { name: text("web[4]"), job: job(), id: text("7"), node: text("b") },
        ];
        assert_eq!(changes(&before, &after), expected);
    }
}

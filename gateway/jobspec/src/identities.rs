//! Identities that servers add to jobs, for what signs tasks and services in elsewhere.

use std::collections::BTreeMap;

use model::document::{Duration, Job, List, Service, Task, WorkloadIdentity};

/// What one of them is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImpliedIdentity {
    pub audience: Vec<String>,
    pub env: bool,
    pub file: bool,
    /// Zero for one that does not expire.
    pub ttl: base::Duration,
}

impl ImpliedIdentity {
    fn named(&self, name: String) -> WorkloadIdentity {
        WorkloadIdentity {
            name,
            audience: List::from(self.audience.clone()),
            env: self.env,
            file: self.file,
            ttl: Duration(self.ttl),
            ..WorkloadIdentity::default()
        }
    }
}

/// By the names of clusters, as the servers are configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImpliedIdentities {
    pub vault: BTreeMap<String, ImpliedIdentity>,
    pub consul_services: BTreeMap<String, ImpliedIdentity>,
    pub consul_tasks: BTreeMap<String, ImpliedIdentity>,
}

/// Adds to tasks and services the identities they need and do not name. Idempotent.
pub fn imply_identities(job: &mut Job, implied: &ImpliedIdentities) {
    for group in &mut job.task_groups {
        let of_group = group.consul.as_ref().map(|consul| consul.cluster.clone());
        for service in &mut group.services {
            of_service(service, "", implied);
        }
        for task in &mut group.tasks {
            let name = task.name.clone();
            for service in &mut task.services {
                of_service(service, &name, implied);
            }
            let own = task.consul.as_ref().map(|consul| consul.cluster.clone());
            let reads = own.clone().or_else(|| of_group.clone());
            if reads.is_some() || !task.templates.is_empty() {
                let cluster = cluster(reads.as_deref().unwrap_or_default()).to_string();
                add(task, "consul", &cluster, &implied.consul_tasks);
            }
            if let Some(vault) = &task.vault {
                let cluster = cluster(&vault.cluster).to_string();
                add(task, "vault", &cluster, &implied.vault);
            }
        }
    }
}

/// Tasks that use a Vault without an identity for it: the names of the task and of the identity.
pub fn missing_vault_identities(job: &Job) -> Vec<(String, String)> {
    let tasks = job.task_groups.iter().flat_map(|group| &*group.tasks);
    tasks
        .filter_map(|task| {
            let name = format!("vault_{}", cluster(&task.vault.as_ref()?.cluster));
            let has = task.identities.iter().any(|own| own.name == name);
            (!has).then(|| (task.name.clone(), name))
        })
        .collect()
}

fn cluster(given: &str) -> &str {
    if given.is_empty() { "default" } else { given }
}

fn add(task: &mut Task, of: &str, cluster: &str, implied: &BTreeMap<String, ImpliedIdentity>) {
    let name = format!("{of}_{cluster}");
    if let Some(identity) = implied.get(cluster)
        && !task.identities.iter().any(|own| own.name == name)
    {
        task.identities.push(identity.named(name));
    }
}

fn of_service(service: &mut Service, task: &str, implied: &ImpliedIdentities) {
    if !matches!(service.provider.as_str(), "" | "consul") || service.identity.is_some() {
        return;
    }
    let Some(identity) = implied.consul_services.get(cluster(&service.cluster)) else { return };
    let task = if task.is_empty() { String::new() } else { format!("{task}-") };
    let name = format!("consul-service_{task}{}-{}", service.name, service.port_label);
    let named = WorkloadIdentity { service_name: service.name.clone(), ..identity.named(name) };
    service.identity = Some(named);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn identities_are_added_where_none_is_named() {
        let job = json!({"TaskGroups": [{
            "Name": "g", "Services": [{"Name": "web", "PortLabel": "http"}],
            "Tasks": [
                {"Name": "a", "Vault": {}, "Templates": [{"DestPath": "x"}],
                 "Services": [{"Name": "own", "PortLabel": "http", "Identity": {"Name": "mine"}}, {"Name": "n", "Provider": "nomad"}]},
                {"Name": "b", "Vault": {"Cluster": "west"}},
                {"Name": "c", "Vault": {}, "Identities": [{"Name": "vault_default", "Audience": ["mine"]}]},
            ],
        }]});
        let mut job: Job = serde_json::from_value(job).unwrap();
        let identity = ImpliedIdentity { audience: vec!["x.io".into()], ..Default::default() };
        let one = BTreeMap::from([("default".to_string(), identity)]);
        let implied =
            ImpliedIdentities { vault: one.clone(), consul_services: one.clone(), consul_tasks: one };
        imply_identities(&mut job, &implied);
        let once = job.clone();
        imply_identities(&mut job, &implied);
        assert_eq!(job, once);
        let group = &job.task_groups[0];
        let names = |at: usize| -> Vec<&str> {
            group.tasks[at].identities.iter().map(|own| own.name.as_str()).collect()
        };
        assert_eq!(names(0), ["consul_default", "vault_default"]);
        assert_eq!((names(1), names(2)), (vec![], vec!["vault_default"]));
        assert_eq!(group.tasks[2].identities[0].audience.0, ["mine"]);
        let of = |service: &Service| service.identity.as_ref().map(|own| own.name.clone());
        assert_eq!(of(&group.services[0]).as_deref(), Some("consul-service_web-http"));
        assert_eq!(of(&group.tasks[0].services[0]).as_deref(), Some("mine"));
        assert_eq!(of(&group.tasks[0].services[1]), None);
        assert_eq!(missing_vault_identities(&job), [("b".to_string(), "vault_west".to_string())]);
    }
}

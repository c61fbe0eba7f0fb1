//! What a job asks for that this release reads but does not do, and what becomes of the job then. The list shrinks as
//! releases grow.

use std::fmt;

use model::document::{
    Consul, Duration, Job, NetworkResource, Resources, Service, ServiceCheck, Task, TaskArtifact, TaskGroup,
    UpdateStrategy, WorkloadIdentity,
};

use crate::canonical::DEFAULT_STAGGER;
use crate::diagnostic::nearest;

/// Drivers of this release's nodes.
const OWN_DRIVERS: [&str; 7] = ["raw_exec", "exec", "java", "docker", "podman", "qemu", "mock_driver"];

/// Other drivers that nodes may have: not each of them is a slip of the pen.
const OTHER_DRIVERS: [&str; 12] = [
    "containerd-driver",
    "ecs",
    "exec2",
    "firecracker-task-driver",
    "iis",
    "jail-task-driver",
    "lxc",
    "nspawn",
    "pot",
    "rkt",
    "singularity",
    "virt",
];

/// What the nodes of a cluster are. Asked only about what a job needs.
pub trait Nodes {
    /// There is at least one.
    fn any(&self) -> bool;

    /// Some of them run another program than this one: what this release does not do may work there.
    fn any_foreign(&self) -> bool;

    /// Some of them has the driver, or another attribute.
    fn has_driver(&self, name: &str) -> bool;

    fn has_attribute(&self, name: &str) -> bool;

    fn has_devices(&self) -> bool;
}

/// Where there is no cluster to ask: a few nodes of this release.
#[derive(Clone, Copy, Debug)]
pub struct NoNodes;

impl Nodes for NoNodes {
    fn any(&self) -> bool {
        false
    }

    fn any_foreign(&self) -> bool {
        false
    }

    fn has_driver(&self, _: &str) -> bool {
        false
    }

    fn has_attribute(&self, _: &str) -> bool {
        false
    }

    fn has_devices(&self) -> bool {
        false
    }
}

/// What becomes of a job that asks for something this release does not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It runs as if that had not been written.
    Ignored,
    /// Its tasks fail wherever they are placed.
    Fails,
    /// As `Fails`, on nodes of this release; other nodes of the cluster may run it.
    MayFail,
    /// No node of the cluster is one it may run on.
    NeverPlaced,
    /// It does what it says, and has a newer spelling.
    Works,
}

/// One block or attribute of a job, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Empty outside of a group.
    pub group: String,
    /// Empty outside of a task.
    pub task: String,
    /// As a job file calls it, like `template` or `network mode "bridge"`.
    pub what: String,
    pub effect: Effect,
    /// A half-sentence; may be empty.
    pub why: String,
}

impl Finding {
    /// `group "web", task "t": `, as far as it is inside of them.
    fn place(&self) -> String {
        let named = |kind: &str, name: &str| (!name.is_empty()).then(|| format!("{kind} \"{name}\""));
        let places: Vec<String> =
            [named("group", &self.group), named("task", &self.task)].into_iter().flatten().collect();
        if places.is_empty() { String::new() } else { format!("{}: ", places.join(", ")) }
    }

    /// What becomes of it, without what it is.
    pub fn consequence(&self) -> String {
        let kind = match self.effect {
            Effect::Ignored if self.task.is_empty() => "ignored, the job runs without it",
            Effect::Ignored => "ignored, the task runs without it",
            Effect::Fails => "the task would fail",
            Effect::MayFail => "the task fails on nodes of this release",
            Effect::NeverPlaced => "never placed on the nodes you have",
            Effect::Works => return self.why.clone(),
        };
        if self.why.is_empty() { kind.to_string() } else { format!("{kind}: {}", self.why) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joint = if self.effect == Effect::Works { "" } else { ":" };
        write!(f, "{}{}{joint} {}", self.place(), self.what, self.consequence())
    }
}

/// What a job asks for that this release does not execute, or has a newer spelling for.
///
/// Defaults are not named, whether they were written or not: jobs come as parsed, canonical, or as a server showed them.
pub fn findings(job: &Job, nodes: &dyn Nodes) -> Vec<Finding> {
    let mut all = Findings {
        nodes,
        group: String::new(),
        task: String::new(),
        has_addresses: false,
        found: Vec::new(),
    };
    job.update.iter().for_each(|block| all.update(block));
    for group in &job.task_groups {
        all.group = group.name.clone().unwrap_or_default();
        all.group(group);
        for task in &group.tasks {
            all.task.clone_from(&task.name);
            all.task(task);
        }
        all.task.clear();
    }
    all.found
}

/// Nomad fails such a task too.
fn is_file_of_node(artifact: &TaskArtifact) -> bool {
    artifact.getter_source.as_deref().is_some_and(|source| source.trim_start().starts_with("file:"))
}

/// It is about another Consul than the default one, or another part of it.
/// Nodes use it themselves, to log in elsewhere.
fn is_for_a_login(identity: &WorkloadIdentity) -> bool {
    identity.name == "consul_default" || identity.name.starts_with("vault_")
}

fn is_special(consul: &Consul) -> bool {
    let is_default = consul.namespace.is_empty() && consul.partition.is_empty();
    !is_default || !matches!(consul.cluster.as_str(), "" | "default")
}

struct Findings<'n> {
    nodes: &'n dyn Nodes,
    group: String,
    task: String,
    /// The group has addresses of its own.
    has_addresses: bool,
    found: Vec<Finding>,
}

impl Findings<'_> {
    fn find(&mut self, what: &str, effect: Effect, why: impl Into<String>) {
        let (group, task) = (self.group.clone(), self.task.clone());
        self.found.push(Finding { group, task, what: what.to_string(), effect, why: why.into() });
    }

    fn ignored(&mut self, asked: &[(&str, bool)]) {
        for (what, _) in asked.iter().filter(|(_, asked)| *asked) {
            self.find(what, Effect::Ignored, "");
        }
    }

    /// Nodes of this release fail a task that asks for it, because running it without would be worse.
    fn fails(&mut self, asked: &[(&str, bool, &str)]) {
        for (what, _, why) in asked.iter().filter(|(_, asked, _)| *asked) {
            let effect = if self.nodes.any_foreign() { Effect::MayFail } else { Effect::Fails };
            self.find(what, effect, *why);
        }
    }

    /// It follows from a constraint that servers add to such a job.
    fn needs(&mut self, what: &str, attribute: &str, name: &str) -> bool {
        let misses = !self.nodes.has_attribute(attribute);
        if misses {
            self.find(what, Effect::NeverPlaced, format!("none has {name}"));
        }
        misses
    }

    /// They take effect, but new job files should not use them.
    fn older_spelling(&mut self, written: &[(&str, &str, bool)]) {
        for (older, newer, _) in written.iter().filter(|(.., written)| *written) {
            let why = format!("is an older spelling of {newer} in a disconnect block");
            self.find(older, Effect::Works, why);
        }
    }

    fn group(&mut self, group: &TaskGroup) {
        self.ignored(&[("consul", group.consul.as_ref().is_some_and(is_special))]);
        self.older_spelling(&[
            (
                "stop_after_client_disconnect",
                "stop_on_client_after",
                group.stop_after_client_disconnect.is_some(),
            ),
            ("max_client_disconnect", "lost_after", group.max_client_disconnect.is_some()),
            ("prevent_reschedule_on_lost", "replace = false", group.prevent_reschedule_on_lost == Some(true)),
        ]);
        group.update.iter().for_each(|block| self.update(block));
        let mode = group.networks.first().map_or("", |network| network.mode.as_str());
        self.has_addresses = mode == "bridge" || mode.starts_with("cni/");
        group.networks.iter().for_each(|network| self.network(network));
        group.services.iter().for_each(|service| self.service(service, None));
    }

    /// There are no updates without a deployment to pace.
    fn update(&mut self, update: &UpdateStrategy) {
        let default = [Duration::default(), DEFAULT_STAGGER];
        self.ignored(&[(
            "update stagger",
            update.stagger.is_some_and(|stagger| !default.contains(&stagger)),
        )]);
    }

    fn network(&mut self, network: &NetworkResource) {
        let mode = format!("network mode \"{}\"", network.mode);
        match network.mode.as_str() {
            "" | "host" | "none" => {}
            "bridge" => drop(self.needs(&mode, "plugins.cni.version.bridge", "a bridge")),
            // Which of them a node has does not stand in its attributes; the scheduler looks for it.
            cni if cni.starts_with("cni/") => {}
            _ => self.fails(&[(&mode, true, "nodes have the modes host, none, bridge and cni/<name>")]),
        }
        let plugins = network.mode == "bridge" || network.mode.starts_with("cni/");
        self.ignored(&[
            ("network cni", network.cni.is_some() && !plugins),
            ("network device", !network.device.is_empty()),
        ]);
    }

    /// `driver` is that of the task, for a service of a task.
    fn service(&mut self, service: &Service, driver: Option<&str>) {
        let service_name = format!("service \"{}\"", service.name);
        let what = if service.name.is_empty() { "service" } else { &service_name };
        if matches!(service.provider.as_str(), "" | "consul") {
            // Parsers fill the provider in: nobody knows whether it was written.
            self.needs(what, "consul.version", "Consul, the provider of a service that names no other");
            self.fails(&[(
                "service connect",
                service.connect.is_some(),
                "nodes of this release run no proxies of Consul",
            )]);
            return;
        }
        // Nomad's own provider has no place for them either.
        let weights = service.weights.as_ref().is_some_and(|own| (own.passing, own.warning) != (1, 1));
        self.ignored(&[
            ("service enable_tag_override", service.enable_tag_override),
            ("service meta", !service.meta.is_empty()),
            ("service canary_meta", !service.canary_meta.is_empty()),
            ("service tagged_addresses", !service.tagged_addresses.is_empty()),
            ("service weights", weights),
        ]);
        self.address_mode("service", &service.address_mode);
        if service.address_mode == "driver"
            && let Some(driver @ ("raw_exec" | "exec" | "java" | "qemu" | "mock_driver")) = driver
        {
            let why = format!("the service is not registered: {driver} gives a task no network of its own");
            self.find("service address_mode \"driver\"", Effect::Ignored, why);
        }
        service.checks.iter().for_each(|check| self.check(check));
    }

    fn check(&mut self, check: &ServiceCheck) {
        const WHY: &str = "the provider nomad has none";
        self.fails(&[
            ("check success_before_passing", check.success_before_passing != 0, WHY),
            ("check failures_before_critical", check.failures_before_critical != 0, WHY),
            ("check failures_before_warning", check.failures_before_warning != 0, WHY),
            ("check expose", check.expose, WHY),
            ("check tls_server_name", !check.tls_server_name.is_empty(), WHY),
        ]);
        self.address_mode("check", &check.address_mode);
    }

    fn address_mode(&mut self, what: &str, mode: &str) {
        let what = format!("{what} address_mode \"{mode}\"");
        let why = "the group has the network of the host";
        self.fails(&[(&what, matches!(mode, "alloc" | "alloc_ipv6") && !self.has_addresses, why)]);
    }

    fn task(&mut self, task: &Task) {
        self.driver(&task.driver);
        self.fails(&[
            ("kind", !task.kind.is_empty(), "nodes of this release run no proxies of Consul"),
            (
                "artifact",
                task.artifacts.iter().any(is_file_of_node),
                "files of the node itself are no artifacts",
            ),
            ("schedule", task.schedule.is_some(), "nodes of this release do not pause tasks"),
        ]);
        if let Some(vault) = &task.vault {
            let (attribute, name) = match vault.cluster.as_str() {
                "" | "default" => ("vault.version".to_string(), "Vault".to_string()),
                name => (format!("vault.{name}.version"), format!("Vault \"{name}\"")),
            };
            self.needs("vault", &attribute, &name);
            let why = "a token has the policies of its role: name one with role";
            self.fails(&[("vault policies", !vault.policies.is_empty(), why)]);
        }
        for secret in
            task.secrets.iter().filter(|secret| !matches!(secret.provider.as_str(), "nomad" | "vault"))
        {
            let what = format!("secret \"{}\"", secret.name);
            let attribute = format!("plugins.secrets.{}.version", secret.provider);
            self.needs(&what, &attribute, &format!("the plugin \"{}\"", secret.provider));
        }
        if !task.volume_mounts.is_empty() {
            self.volume_mount(&task.driver);
        }
        self.ignored(&[
            ("consul", task.consul.as_ref().is_some_and(is_special)),
            (
                "identity without env or file",
                task.identities.iter().any(|own| !own.env && !own.file && !is_for_a_login(own)),
            ),
            ("scaling", !task.scaling_policies.is_empty()),
        ]);
        task.resources.iter().for_each(|resources| self.resources(resources, &task.driver));
        task.services.iter().for_each(|service| self.service(service, Some(&task.driver)));
    }

    fn driver(&mut self, driver: &str) {
        if driver.is_empty() || self.nodes.has_driver(driver) {
            return;
        }
        let what = format!("driver \"{driver}\"");
        if OWN_DRIVERS.contains(&driver) {
            if self.nodes.any() {
                let why = match driver {
                    "docker" => "none has a container engine that answers".to_string(),
                    "podman" => "none has a service of Podman that answers".to_string(),
                    "exec" => "none runs as root on a host with control groups".to_string(),
                    "java" => "none runs as root on a host with control groups and java".to_string(),
                    "qemu" => "none has a program qemu-system-… in the agent's PATH".to_string(),
                    _ => format!("none has it enabled: see plugin \"{driver}\" in the agent's configuration"),
                };
                self.find(&what, Effect::NeverPlaced, why);
            }
            return;
        }
        let known = OWN_DRIVERS.iter().chain(&OTHER_DRIVERS).copied();
        match nearest(driver, known).filter(|near| *near != driver) {
            Some(near) => {
                self.find(&what, Effect::Fails, format!("no driver has that name: did you mean \"{near}\"?"));
            }
            None => self.find(&what, Effect::NeverPlaced, "none has it"),
        }
    }

    /// Tasks of these drivers see the host's file system as it is: nothing can be mounted for them.
    fn volume_mount(&mut self, driver: &str) {
        let why = "tasks of this driver see the host's file system as it is: leave it out, and use the path that \
                   \"node status -verbose\" shows for the volume";
        if ["raw_exec", "qemu", "mock_driver"].contains(&driver) {
            self.find("volume_mount", Effect::Fails, why);
        }
    }

    fn resources(&mut self, resources: &Resources, driver: &str) {
        // Through control groups, where the host has any, or by the engine.
        let limits = ["raw_exec", "exec", "java", "docker", "podman"].contains(&driver);
        let cores = limits || driver == "qemu";
        self.ignored(&[
            ("resources cores", resources.cores.unwrap_or(0) > 0 && !cores),
            ("resources memory_max", resources.memory_max_mb.unwrap_or(0) != 0 && !limits),
            ("resources network", !resources.networks.is_empty()),
            ("resources numa", resources.numa.is_some()),
        ]);
        if !resources.devices.is_empty() && !self.nodes.has_devices() {
            self.find("resources device", Effect::NeverPlaced, "none has a device");
        }
    }
}

//! The rights that follow from several policies.

use crate::capability::Set;
use crate::globs::Globs;
use crate::policy::Policy;
use crate::{
    Capability, HostVolumeCapability, Level, OperatorCapability, PoolCapability, VariableCapability,
};

/// What a caller may do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Acl {
    is_management: bool,
    namespaces: Globs<Set<Capability>>,
    /// By namespace and path, with a NUL between them.
    variables: Globs<Set<VariableCapability>>,
    node_pools: Globs<Set<PoolCapability>>,
    host_volumes: Globs<Set<HostVolumeCapability>>,
    agent: Option<Level>,
    node: Option<Level>,
    operator: Option<Level>,
    operator_capabilities: Set<OperatorCapability>,
    quota: Option<Level>,
    plugin: Option<Level>,
    workload: Option<Claims>,
    is_node: bool,
}

/// The task whose identity a caller has. It may read what its job keeps for it, without a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    pub namespace: String,
    /// That of the parent, for a child of a periodic or parameterized job.
    pub job: String,
    pub group: String,
    pub task: String,
}

impl Acl {
    /// Everything is allowed: to management tokens, and to everybody while access control is off.
    pub fn management() -> Acl {
        Acl { is_management: true, ..Acl::default() }
    }

    /// Nothing but what the policies say.
    pub fn of<'a>(policies: impl IntoIterator<Item = &'a Policy>) -> Acl {
        let mut acl = Acl::default();
        for policy in policies {
            acl.add(policy);
        }
        acl
    }

    /// A node of this pool: it reads what its work needs.
    pub fn node(pool: &str) -> Acl {
        let mut acl =
            Acl { agent: Some(Level::Read), node: Some(Level::Read), is_node: true, ..Acl::default() };
        acl.node_pools.change(pool, |set| *set = Set::of(&[PoolCapability::Read]));
        acl
    }

    /// The same for a task with this identity.
    pub fn with_workload(self, claims: Claims) -> Acl {
        Acl { workload: Some(claims), ..self }
    }

    /// That of a node, which is not one that reads nodes.
    pub fn is_node(&self) -> bool {
        self.is_node
    }

    pub fn workload(&self) -> Option<&Claims> {
        self.workload.as_ref()
    }

    pub fn is_management(&self) -> bool {
        self.is_management
    }

    /// In all namespaces (`*`): in at least one of them.
    pub fn allows(&self, namespace: &str, capability: Capability) -> bool {
        self.is_management || self.in_namespace(namespace, |set| allowed(set, capability, Capability::Deny))
    }

    /// One of them is enough.
    pub fn allows_any(&self, namespace: &str, capabilities: &[Capability]) -> bool {
        capabilities.iter().any(|capability| self.allows(namespace, *capability))
    }

    /// There is something that may be done in it.
    pub fn knows_namespace(&self, namespace: &str) -> bool {
        self.is_management
            || self.in_namespace(namespace, |set| !set.is_empty() && !set.contains(Capability::Deny))
            || self.variables_of(namespace).any(|set| !set.contains(VariableCapability::Deny))
    }

    pub fn allows_pool(&self, pool: &str, capability: PoolCapability) -> bool {
        let rule = || self.node_pools.get(pool);
        self.is_management || rule().is_some_and(|set| allowed(set, capability, PoolCapability::Deny))
    }

    /// There is a rule for the pool, and it does not let its nodes be read. Without one they are read like all nodes.
    pub fn hides_pool(&self, pool: &str) -> bool {
        let rule = || self.node_pools.get(pool);
        !self.is_management
            && rule().is_some_and(|set| !allowed(set, PoolCapability::Read, PoolCapability::Deny))
    }

    pub fn allows_host_volume(&self, volume: &str, capability: HostVolumeCapability) -> bool {
        let rule = || self.host_volumes.get(volume);
        self.is_management || rule().is_some_and(|set| allowed(set, capability, HostVolumeCapability::Deny))
    }

    pub fn allows_variable(&self, namespace: &str, path: &str, capability: VariableCapability) -> bool {
        if self.is_management {
            return true;
        }
        let key = variable_key(namespace, path);
        let holds = |set| allowed(set, capability, VariableCapability::Deny);
        if let Some(exact) = self.variables.exact(&key) {
            return holds(exact);
        }
        // A glob of some policy takes nothing away from what a task's own job keeps for it.
        let is_own = self.workload.as_ref().is_some_and(|task| task.owns(namespace, path));
        if is_own && matches!(capability, VariableCapability::Read | VariableCapability::List) {
            return true;
        }
        self.variables.get(&key).is_some_and(holds)
    }

    /// There are variables of the namespace that may be looked at or changed.
    pub fn knows_variables(&self, namespace: &str) -> bool {
        let of_task =
            || self.workload.as_ref().is_some_and(|task| task.namespace == namespace || namespace == "*");
        self.is_management
            || self.variables_of(namespace).any(|set| !set.contains(VariableCapability::Deny))
            || of_task()
    }

    pub fn reads_agent(&self) -> bool {
        self.is_management || reads(self.agent)
    }

    pub fn writes_agent(&self) -> bool {
        self.is_management || writes(self.agent)
    }

    pub fn reads_nodes(&self) -> bool {
        self.is_management || reads(self.node)
    }

    pub fn writes_nodes(&self) -> bool {
        self.is_management || writes(self.node)
    }

    pub fn reads_operator(&self) -> bool {
        self.is_management || reads(self.operator)
    }

    pub fn writes_operator(&self) -> bool {
        self.is_management || writes(self.operator)
    }

    pub fn allows_operator(&self, capability: OperatorCapability) -> bool {
        self.is_management || allowed(self.operator_capabilities, capability, OperatorCapability::Deny)
    }

    pub fn lists_plugins(&self) -> bool {
        self.is_management || self.plugin == Some(Level::List) || reads(self.plugin)
    }

    pub fn reads_plugins(&self) -> bool {
        self.is_management || reads(self.plugin)
    }

    fn in_namespace(&self, namespace: &str, holds: impl Fn(Set<Capability>) -> bool) -> bool {
        if namespace == "*" {
            return self.namespaces.values().any(holds);
        }
        self.namespaces.get(namespace).is_some_and(holds)
    }

    fn variables_of<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = Set<VariableCapability>> {
        let of = move |glob: &str| {
            let glob = glob.split('\0').next().unwrap_or_default();
            namespace == "*" || base::matches_glob(glob, namespace)
        };
        self.variables.iter().filter(move |(key, _)| of(key)).map(|(_, set)| set)
    }

    fn add(&mut self, policy: &Policy) {
        for rule in &policy.namespaces {
            self.namespaces
                .change(&rule.name, |set| *set = merged(*set, rule.capabilities, Capability::Deny));
            for path in rule.variables.iter().flat_map(|variables| &variables.paths) {
                self.variables.change(&variable_key(&rule.name, &path.path_spec), |set| {
                    *set = merged(*set, path.capabilities, VariableCapability::Deny);
                });
            }
        }
        for rule in &policy.node_pools {
            self.node_pools
                .change(&rule.name, |set| *set = merged(*set, rule.capabilities, PoolCapability::Deny));
        }
        for rule in &policy.host_volumes {
            let deny = HostVolumeCapability::Deny;
            self.host_volumes.change(&rule.name, |set| *set = merged(*set, rule.capabilities, deny));
        }
        self.agent = self.agent.max(policy.agent.as_ref().map(|rule| rule.policy));
        self.node = self.node.max(policy.node.as_ref().map(|rule| rule.policy));
        self.quota = self.quota.max(policy.quota.as_ref().map(|rule| rule.policy));
        self.plugin = self.plugin.max(policy.plugin.as_ref().map(|rule| rule.policy));
        if let Some(rule) = &policy.operator {
            self.operator = self.operator.max(rule.policy);
            self.operator_capabilities =
                merged(self.operator_capabilities, rule.capabilities, OperatorCapability::Deny);
        }
    }
}

impl Claims {
    /// The variable is one that its job, its group or it owns.
    fn owns(&self, namespace: &str, path: &str) -> bool {
        let Claims { job, group, task, .. } = self;
        let own = [
            "nomad/jobs".to_string(),
            format!("nomad/jobs/{job}"),
            format!("nomad/jobs/{job}/{group}"),
            format!("nomad/jobs/{job}/{group}/{task}"),
        ];
        namespace == self.namespace && own.iter().any(|own| own == path)
    }
}

fn variable_key(namespace: &str, path: &str) -> String {
    format!("{namespace}\0{path}")
}

fn allowed<C: crate::capability::Member>(set: Set<C>, capability: C, deny: C) -> bool {
    set.contains(capability) && !set.contains(deny)
}

/// A denial anywhere is all that is left.
fn merged<C: crate::capability::Member>(all: Set<C>, more: Set<C>, deny: C) -> Set<C> {
    let both = all | more;
    if both.contains(deny) { Set::of(&[deny]) } else { both }
}

fn reads(level: Option<Level>) -> bool {
    matches!(level, Some(Level::Read | Level::Write))
}

fn writes(level: Option<Level>) -> bool {
    level == Some(Level::Write)
}

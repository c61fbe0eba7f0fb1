//! Servers that live in memory, and what tests of a whole agent need besides.

pub mod consul;
pub mod engine;
pub mod listening;
pub mod packages;
pub mod podman;
pub mod registry;
pub mod vault;
pub mod web;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use executor::{process, spec};
use model::document::{Allocation, CSIVolume, Map, Node, TaskState};
use node::Agent;
use node::artifacts::ArtifactSettings;
use node::csi::CsiSettings;
use node::drain::ShutdownDrain;
use node::drivers::BUILTIN;
use node::server::{Assigned, Lease, ServerClient, ServerError, TemplateRead};
use node::settings::{Capacity, GcSettings, NodeSettings, Reserved};
use node::templates::TemplateSettings;
use serde_json::{Value, json};
use template::Dependency;
use tokio::sync::watch;
use wire::messages::{
    AllocIdentitiesResponse, CsiCapacityRange, CsiVolumeClaimRequest, CsiVolumeClaimResponse,
    CsiVolumeExpandedRequest, CsiVolumeUnpublishRequest, PlacedAlloc, ServiceRegistration,
    SignedWorkloadIdentity, WorkloadIdentityRequest,
};

/// How long anything may take before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `found` finds something.
#[track_caller]
pub fn eventually<T>(what: &str, found: impl FnMut() -> Option<T>) -> T {
    eventually_within(PATIENCE, what, found)
}

/// The same, for what may take longer or must not take as long.
#[track_caller]
pub fn eventually_within<T>(patience: Duration, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The same for what has to be asked for.
pub async fn eventually_async<T>(mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found().await {
            return found;
        }
        assert!(Instant::now() < deadline, "it did not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A directory for one node. Tasks outlive agents, so also a failed test's; not this directory's, though.
pub struct Base(tempfile::TempDir);

impl Base {
    pub fn new() -> Base {
        Base(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Control groups of this node's own: other tests have tasks of the same names at the same time.
fn cgroup_parent(base: &Path) -> String {
    static STALE: std::sync::Once = std::sync::Once::new();
    STALE.call_once(remove_stale_groups);
    format!("{GROUP}{}", base.file_name().unwrap().to_str().unwrap().trim_start_matches('.'))
}

const GROUP: &str = "sojourn-test-";

/// What earlier runs have left: their directories are gone.
fn remove_stale_groups() {
    for tree in TREES.map(|tree| Path::new("/sys/fs/cgroup").join(tree)) {
        for entry in std::fs::read_dir(tree).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let base = name.to_str().and_then(|name| name.strip_prefix(GROUP));
            if base.is_some_and(|base| !std::env::temp_dir().join(format!(".{base}")).exists()) {
                remove_group(&entry.path());
            }
        }
    }
}

/// Of version 2, and of the controllers of version 1.
const TREES: [&str; 5] = ["", "cpu", "cpuset", "freezer", "memory"];

/// A group and what is in it, as far as nothing runs there.
fn remove_group(group: &Path) {
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove_group(&entry.path());
        }
    }
    std::fs::remove_dir(group).ok();
}

impl Drop for Base {
    fn drop(&mut self) {
        self.end_executors();
        node::layout::unmount_below(self.path(), |_| true).ok();
        for tree in TREES {
            let group = Path::new("/sys/fs/cgroup").join(tree).join(cgroup_parent(self.path()));
            // An executor that is just ending still has its group in there.
            let deadline = Instant::now() + Duration::from_secs(2);
            while group.exists() && Instant::now() < deadline {
                remove_group(&group);
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

impl Base {
    fn end_executors(&self) {
        let executors = std::fs::read_dir(self.path().join("client/executors"));
        for directory in executors.into_iter().flatten().flatten() {
            if let Ok(Some(state)) =
                spec::read::<spec::ExecutorProcesses>(&directory.path(), spec::STATE_FILE)
                && state.executor.is_alive()
            {
                // The executor sees its task end, and takes everything else along.
                process::signal(state.task.pid, nix::sys::signal::Signal::SIGKILL).ok();
            }
        }
    }
}

/// What the servers know and have received.
#[derive(Debug, Default)]
pub struct Cluster {
    pub registered: Vec<Node>,
    pub beats: usize,
    pub assigned: BTreeMap<String, Allocation>,
    /// Allocations of other nodes.
    pub elsewhere: BTreeMap<String, Allocation>,
    /// The latest update of each allocation, as it arrived.
    pub updates: BTreeMap<String, Allocation>,
    pub index: u64,
    /// The servers do not know the node.
    pub forgotten: bool,
    pub unreachable: bool,
    /// Reports are refused until the next heartbeat.
    pub wants_heartbeat: bool,
    /// `None` for a short one.
    pub ttl: Option<Duration>,
    /// The order of calls, by name.
    pub calls: Vec<&'static str>,
    /// Instances of services by id.
    pub services: BTreeMap<String, ServiceRegistration>,
    /// Variables by path, as the HTTP API shows them. One that is called `closed` may not be read.
    pub variables: BTreeMap<String, Value>,
    /// What templates have read.
    pub reads: Vec<TemplateRead>,
    /// Registrations are refused.
    pub refuses_services: bool,
    /// Volumes of storage plugins by id, and who has which.
    pub csi_volumes: BTreeMap<String, CSIVolume>,
    /// Volumes that have grown, and that nobody has expanded.
    pub expansions: BTreeMap<String, CsiCapacityRange>,
    pub claims: std::collections::BTreeSet<(String, String)>,
}

#[derive(Debug)]
pub struct FakeServers {
    pub cluster: Mutex<Cluster>,
    changed: watch::Sender<u64>,
}

impl FakeServers {
    pub fn new() -> Arc<FakeServers> {
        let cluster = Cluster { index: 1, ..Cluster::default() };
        Arc::new(FakeServers { cluster: Mutex::new(cluster), changed: watch::Sender::new(1) })
    }

    /// Assigns an allocation, or a newer version of it.
    pub fn assign(&self, mut alloc: Allocation) {
        self.change(|cluster| {
            alloc.alloc_modify_index = cluster.index;
            alloc.modify_index = cluster.index;
            cluster.assigned.insert(alloc.id.clone(), alloc);
        });
    }

    pub fn stop(&self, id: &str) {
        let mut alloc = self.cluster.lock().unwrap().assigned[id].clone();
        alloc.desired_status = "stop".into();
        self.assign(alloc);
    }

    pub fn forget_alloc(&self, id: &str) {
        self.change(|cluster| drop(cluster.assigned.remove(id)));
    }

    pub fn change(&self, change: impl FnOnce(&mut Cluster)) {
        let index = {
            let mut cluster = self.cluster.lock().unwrap();
            cluster.index += 1;
            change(&mut cluster);
            cluster.index
        };
        // Only now: who waits looks at the cluster while holding what is written to here.
        self.changed.send_modify(|newest| *newest = index.max(*newest));
    }

    fn called(&self, name: &'static str) -> Result<(), ServerError> {
        let mut cluster = self.cluster.lock().unwrap();
        cluster.calls.push(name);
        match cluster.unreachable {
            true => Err(ServerError::Unreachable("cut off".into())),
            false => Ok(()),
        }
    }

    pub fn update(&self, id: &str) -> Option<Allocation> {
        self.cluster.lock().unwrap().updates.get(id).cloned()
    }

    /// Waits until the servers have this client status.
    #[track_caller]
    pub fn await_status(&self, id: &str, status: &str) -> Allocation {
        eventually(&format!("status {status}, last {:?}", self.update(id)), || {
            self.update(id).filter(|update| update.client_status == status)
        })
    }

    /// Waits until the servers have a state of the task for which `holds`.
    #[track_caller]
    pub fn await_task(&self, id: &str, task: &str, holds: impl Fn(&TaskState) -> bool) -> TaskState {
        eventually(&format!("a state of {task}"), || {
            let state = self.update(id)?.task_states.get(task)?.clone();
            holds(&state).then_some(state)
        })
    }
}

impl Cluster {
    fn lease(&self) -> Lease {
        Lease { ttl: self.ttl.unwrap_or(Duration::from_millis(200)), eligibility: "eligible".into() }
    }
}

impl ServerClient for FakeServers {
    async fn register(&self, node: &Node) -> Result<Lease, ServerError> {
        self.called("register")?;
        let mut cluster = self.cluster.lock().unwrap();
        cluster.registered.push(node.clone());
        cluster.forgotten = false;
        Ok(cluster.lease())
    }

    async fn update_status(&self, _: &str) -> Result<Lease, ServerError> {
        self.called("update_status")?;
        let mut cluster = self.cluster.lock().unwrap();
        if cluster.forgotten {
            return Err(ServerError::NodeUnknown("node not found".into()));
        }
        cluster.beats += 1;
        cluster.wants_heartbeat = false;
        Ok(cluster.lease())
    }

    async fn client_allocs(&self, _: &Node, min_index: u64, _: bool) -> Result<Assigned, ServerError> {
        self.called("client_allocs")?;
        self.changed.subscribe().wait_for(|index| *index > min_index).await.unwrap();
        let cluster = self.cluster.lock().unwrap();
        let allocs = cluster.assigned.iter().map(|(id, alloc)| (id.clone(), alloc.alloc_modify_index));
        Ok(Assigned { allocs: allocs.collect(), index: cluster.index, ..Assigned::default() })
    }

    async fn allocs(&self, ids: Vec<String>, min_index: u64) -> Result<(Vec<PlacedAlloc>, u64), ServerError> {
        self.called("allocs")?;
        // As real servers: an answer that is not newer than asked for is waited for.
        let newest = |cluster: &Cluster| ids.iter().map(|id| cluster.assigned[id].alloc_modify_index).max();
        let mut changed = self.changed.subscribe();
        changed.wait_for(|_| newest(&self.cluster.lock().unwrap()) > Some(min_index)).await.unwrap();
        let cluster = self.cluster.lock().unwrap();
        let found = ids.iter().filter_map(|id| cluster.assigned.get(id).cloned());
        let placed = found.map(|alloc| PlacedAlloc { alloc, ..PlacedAlloc::default() });
        Ok((placed.collect(), cluster.index))
    }

    async fn sign_identities(
        &self,
        wanted: Vec<WorkloadIdentityRequest>,
        _: u64,
    ) -> Result<AllocIdentitiesResponse, ServerError> {
        self.called("sign_identities")?;
        let sign = |request: WorkloadIdentityRequest| SignedWorkloadIdentity {
            jwt: format!("token-of-{}", request.identity_name),
            request,
            ..Default::default()
        };
        let signed_identities = wanted.into_iter().map(sign).collect();
        Ok(AllocIdentitiesResponse { signed_identities, ..Default::default() })
    }

    async fn claim_volume(
        &self,
        request: CsiVolumeClaimRequest,
    ) -> Result<CsiVolumeClaimResponse, ServerError> {
        self.called("claim_volume")?;
        let mut cluster = self.cluster.lock().unwrap();
        let taken = cluster
            .claims
            .iter()
            .find(|(volume, alloc)| *volume == request.volume_id && *alloc != request.allocation_id);
        if taken.is_some() {
            return Err(ServerError::Refused("volume max claims reached".into()));
        }
        let volume = cluster.csi_volumes.get(&request.volume_id).cloned();
        let volume = volume.ok_or_else(|| ServerError::Refused("volume not found".into()))?;
        cluster.claims.insert((request.volume_id, request.allocation_id));
        let publish_context = Map([("device".to_string(), "/dev/none".to_string())].into());
        let expansion = cluster.expansions.get(&volume.id).copied();
        Ok(CsiVolumeClaimResponse { publish_context, volume: Some(volume), expansion, ..Default::default() })
    }

    async fn volume_expanded(&self, request: CsiVolumeExpandedRequest) -> Result<(), ServerError> {
        self.called("volume_expanded")?;
        self.cluster.lock().unwrap().expansions.remove(&request.volume_id);
        Ok(())
    }

    async fn unpublish_volume(&self, request: CsiVolumeUnpublishRequest) -> Result<(), ServerError> {
        self.called("unpublish_volume")?;
        let claim = request.claim.unwrap();
        self.cluster.lock().unwrap().claims.remove(&(request.volume_id, claim.allocation_id));
        Ok(())
    }

    async fn alloc(&self, id: &str, min_index: u64) -> Result<(Option<Allocation>, u64), ServerError> {
        self.called("alloc")?;
        self.changed.subscribe().wait_for(|index| *index > min_index).await.unwrap();
        let cluster = self.cluster.lock().unwrap();
        Ok((cluster.elsewhere.get(id).cloned(), cluster.index))
    }

    async fn node(&self, _: &str) -> Result<Option<Node>, ServerError> {
        self.called("node")?;
        Ok(None)
    }

    async fn drain(&self, _: &str, _: ShutdownDrain) -> Result<(), ServerError> {
        self.called("drain")
    }

    async fn update_allocs(&self, updates: Vec<Allocation>) -> Result<(), ServerError> {
        self.called("update_allocs")?;
        let mut cluster = self.cluster.lock().unwrap();
        if cluster.wants_heartbeat {
            return Err(ServerError::Refused("node is disconnected".into()));
        }
        cluster.updates.extend(updates.into_iter().map(|update| (update.id.clone(), update)));
        Ok(())
    }

    async fn register_services(&self, services: Vec<ServiceRegistration>) -> Result<(), ServerError> {
        self.called("register_services")?;
        let mut cluster = self.cluster.lock().unwrap();
        if cluster.refuses_services {
            return Err(ServerError::Refused("node is down".into()));
        }
        cluster.services.extend(services.into_iter().map(|service| (service.id.clone(), service)));
        Ok(())
    }

    async fn remove_service(&self, _: &str, id: &str) -> Result<(), ServerError> {
        self.called("remove_service")?;
        let removed = self.cluster.lock().unwrap().services.remove(id);
        removed.map(drop).ok_or_else(|| ServerError::Refused("service registration not found".into()))
    }

    async fn read(&self, read: &TemplateRead) -> Result<(Option<Value>, u64), ServerError> {
        self.called("read")?;
        self.cluster.lock().unwrap().reads.push(read.clone());
        self.changed.subscribe().wait_for(|index| *index > read.min_index).await.unwrap();
        let cluster = self.cluster.lock().unwrap();
        let found = match &read.dependency {
            Dependency::Variable { path, .. } if path == "closed" => {
                return Err(ServerError::Denied("Permission denied".into()));
            }
            Dependency::Variable { path, .. } => cluster.variables.get(path).cloned(),
            Dependency::Service { name, .. } => {
                let named = cluster.services.values().filter(|service| service.service_name == *name);
                Some(named.map(|service| serde_json::to_value(service).unwrap()).collect())
            }
            Dependency::Consul(_) | Dependency::Vault(_) => None,
            Dependency::Variables { .. } | Dependency::Services { .. } => Some(json!([])),
        };
        Ok((found, cluster.index))
    }
}

/// Settings of a node below `base`, with short patience. Not in development mode: state is kept.
pub fn settings(base: &Path) -> NodeSettings {
    let enabled = BTreeMap::from([("enabled".to_string(), json!(true))]);
    NodeSettings {
        reservable_cores: Vec::new(),
        disable_remote_exec: false,
        state_dir: base.join("client"),
        alloc_dir: base.join("alloc"),
        dev: false,
        ephemeral: false,
        region: "global".into(),
        datacenter: "dc1".into(),
        node_name: "alpha".into(),
        node_class: String::new(),
        node_pool: "default".into(),
        meta: BTreeMap::from([("rack".to_string(), "r7".to_string())]),
        http_address: "127.0.0.1:4646".into(),
        tls_http: false,
        tls: None,
        reserved: Reserved::default(),
        capacity: Capacity { cpu_mhz: 4000, memory_mib: 1024, disk_mib: 1024 },
        network_interface: "lo".into(),
        network: Default::default(),
        min_dynamic_port: 20000,
        max_dynamic_port: 32000,
        max_kill_timeout: Duration::from_secs(30),
        drivers: BUILTIN.to_vec(),
        driver_filter: Default::default(),
        fingerprint_filter: Default::default(),
        host_volumes: BTreeMap::new(),
        host_volumes_dir: base.join("host_volumes"),
        host_volume_plugin_dir: base.join("host_volume_plugins"),
        gc_volumes_on_node_gc: false,
        ephemeral_disk_quota: false,
        csi: CsiSettings::usual(),
        plugins: ["raw_exec", "mock_driver"].map(|driver| (driver.to_string(), enabled.clone())).into(),
        plugin_dir: base.join("driver_plugins"),
        external_plugins: BTreeMap::new(),
        executor_program: PathBuf::from(env!("CARGO_BIN_EXE_node-executor")),
        cgroup_parent: cgroup_parent(base),
        chroot_env: BTreeMap::new(),
        denied_users: Default::default(),
        dynamic_users: Default::default(),
        dns: None,
        log_sinks: BTreeMap::new(),
        default_ineligible: false,
        node_max_allocs: 0,
        gc: GcSettings {
            interval: Duration::from_secs(60),
            disk_usage_percent_max: 100,
            inode_usage_percent_max: 100,
            allocs_max: 50,
            parallel_destroys: 2,
        },
        templates: TemplateSettings::usual(),
        consul: None,
        vaults: Vec::new(),
        artifacts: ArtifactSettings::usual(),
        common_plugin_dir: base.join("plugins"),
        network_speed_mbits: 0,
        ipv6_first: false,
        service_discovery: true,
        clouds: Default::default(),
        id_of_host: false,
        task_open_files: Some(777),
        intro_token: String::new(),
        log: Default::default(),
        debug: true,
    }
}

pub async fn start(settings: NodeSettings, servers: &Arc<FakeServers>) -> Agent {
    let servers = Arc::clone(servers);
    Agent::start(settings, |_| servers).await.unwrap()
}

/// An allocation of a job of this type, with these tasks.
pub fn alloc(id: u8, kind: &str, tasks: Value) -> Allocation {
    group_alloc(id, kind, json!({"Tasks": tasks}))
}

pub fn group_alloc(id: u8, kind: &str, mut group: Value) -> Allocation {
    group["Name"] = json!("g");
    group["RestartPolicy"] = match group.get("RestartPolicy") {
        Some(given) => given.clone(),
        None => json!({"Attempts": 0, "Mode": "fail", "Interval": "1m", "Delay": "1s"}),
    };
    serde_json::from_value(json!({
        "ID": alloc_id(id), "Name": "job.g[0]", "Namespace": "default", "JobID": "job", "TaskGroup": "g",
        "DesiredStatus": "run", "ClientStatus": "pending",
        "Job": {"ID": "job", "Name": "job", "Type": kind, "TaskGroups": [group]}
    }))
    .unwrap()
}

pub fn alloc_id(id: u8) -> String {
    format!("5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f{id:02x}")
}

/// A task that runs a shell script.
pub fn shell(name: &str, script: &str) -> Value {
    json!({"Name": name, "Driver": "raw_exec", "Config": {"command": "/bin/sh", "args": ["-c", script]}})
}

/// A task of the mock driver.
pub fn mock(name: &str, config: Value) -> Value {
    json!({"Name": name, "Driver": "mock_driver", "Config": config})
}

pub fn kinds(state: &TaskState) -> Vec<&str> {
    state.events.iter().map(|event| event.kind.as_str()).collect()
}

pub fn log(base: &Path, alloc: u8, file: &str) -> String {
    let path = base.join("alloc").join(alloc_id(alloc)).join("alloc/logs").join(file);
    std::fs::read_to_string(path).unwrap_or_default()
}

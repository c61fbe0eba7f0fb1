//! What unit tests of hooks need: a context with a real local state, and nothing that runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::document::{Allocation, Node};
use tokio::sync::{mpsc, watch};

use crate::alloc::hooks::AllocContext;
use crate::artifacts::ArtifactSettings;
use crate::context::{Context, ContextParts};
use crate::csi::CsiSettings;
use crate::driver::{Drivers, Limits, TaskConfig, TaskNames, Values};
use crate::layout::AllocDir;
use crate::settings::{Capacity, GcSettings, NodeSettings, Reserved};
use crate::store::Store;
use crate::task::hooks::TaskContext;
use crate::task::lifecycle::{Role, Stage};
use crate::task::states::TaskStates;
use crate::templates::TemplateSettings;

pub const ALLOC_ID: &str = "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01";

/// A context whose local state is below `base`. Only one at a time can have it.
pub fn context(base: &Path) -> Arc<Context> {
    Arc::new(Context::new(ContextParts {
        settings: settings(base),
        drivers: Drivers::default(),
        plugins: Default::default(),
        store: Store::open(&base.join("state.db")).unwrap(),
        inherited: BTreeMap::new(),
        seed: 1,
        node: Node::default(),
        dynamic_meta: BTreeMap::new(),
        registration: Default::default(),
        vaults: Default::default(),
        disk_quotas: None,
    }))
}

pub fn settings(base: &Path) -> NodeSettings {
    NodeSettings {
        state_dir: base.to_path_buf(),
        alloc_dir: base.join("alloc"),
        ephemeral_disk_quota: false,
        dev: false,
        ephemeral: false,
        region: "global".into(),
        datacenter: "dc1".into(),
        node_name: "alpha".into(),
        node_class: String::new(),
        node_pool: "default".into(),
        meta: BTreeMap::new(),
        http_address: String::new(),
        tls_http: false,
        tls: None,
        reservable_cores: Vec::new(),
        disable_remote_exec: false,
        reserved: Reserved::default(),
        capacity: Capacity::default(),
        network_interface: "lo".into(),
        network: Default::default(),
        min_dynamic_port: 20000,
        max_dynamic_port: 32000,
        max_kill_timeout: Duration::from_secs(30),
        drivers: Vec::new(),
        driver_filter: Default::default(),
        fingerprint_filter: Default::default(),
        host_volumes: BTreeMap::new(),
        host_volumes_dir: base.join("host_volumes"),
        host_volume_plugin_dir: base.join("host_volume_plugins"),
        gc_volumes_on_node_gc: false,
        csi: CsiSettings::usual(),
        plugins: BTreeMap::new(),
        plugin_dir: base.join("driver_plugins"),
        external_plugins: BTreeMap::new(),
        executor_program: PathBuf::new(),
        cgroup_parent: String::new(),
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
        task_open_files: None,
        intro_token: String::new(),
        log: Default::default(),
        debug: true,
    }
}

/// A task as a driver gets it.
pub fn task_config() -> TaskConfig {
    let dir = AllocDir::new(Path::new("/nowhere"), ALLOC_ID).unwrap();
    TaskConfig {
        alloc_id: ALLOC_ID.to_string(),
        task: "t".to_string(),
        instance: "00000001".to_string(),
        config: Values::default(),
        block: BTreeMap::new(),
        env: BTreeMap::new(),
        user: String::new(),
        dynamic_user: None,
        dir: dir.task("t"),
        shared_dir: dir.shared(),
        logs: None,
        limits: Limits::default(),
        cores: Vec::new(),
        ports: Vec::new(),
        mounts: Vec::new(),
        devices: Vec::new(),
        device_env: BTreeMap::new(),
        network_namespace: None,
        hosts_file: None,
        resolv_conf: None,
        names: TaskNames::default(),
    }
}

/// An allocation of one group with one task named `t`.
pub fn alloc() -> Arc<Allocation> {
    Arc::new(
        serde_json::from_value(serde_json::json!({
            "ID": ALLOC_ID, "TaskGroup": "g", "DesiredStatus": "run",
            "Job": {"ID": "job", "Type": "service", "TaskGroups": [{"Name": "g", "Tasks": [{"Name": "t"}]}]}
        }))
        .unwrap(),
    )
}

pub fn alloc_context(context: &Arc<Context>) -> AllocContext {
    let tasks = TaskStates::new(ALLOC_ID, context.store.clone(), BTreeMap::new());
    AllocContext {
        id: ALLOC_ID.to_string(),
        dir: AllocDir::new(&context.settings.alloc_dir, ALLOC_ID).unwrap(),
        context: Arc::clone(context),
        tasks: Arc::new(tasks),
        roles: BTreeMap::new(),
        versions: watch::channel(alloc()).1,
        stopping: watch::channel(None).1,
        commands: mpsc::channel(1).0.downgrade(),
        predecessors: Default::default(),
        current_hook: Arc::default(),
        deployment_status: Mutex::default(),
    }
}

pub fn task_context(context: &Arc<Context>) -> TaskContext {
    let AllocContext { dir, tasks, versions, .. } = alloc_context(context);
    TaskContext {
        context: Arc::clone(context),
        alloc_dir: dir,
        tasks,
        name: "t".to_string(),
        role: Role { stage: Stage::Main, sidecar: false, leader: false },
        alloc: versions,
        kill: watch::channel(None).1,
        requests: mpsc::channel(1).0.downgrade(),
    }
}

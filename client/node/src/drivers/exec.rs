//! Tasks as processes that are kept apart from their host: own processes, own shared memory, own root.
//!
//! The root is the task's directory. What a program needs of the host is laid over it at each start, read-only, with a
//! layer of the task's own above for what it changes: so a start takes milliseconds, whatever the host has in `/usr`, and
//! a task changes no file of the host. How that is done is in `client/executor/src/isolation`.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use executor::spec::{DeviceSpec, ExecutorSpec, IsolationSpec, LayerSpec, MountSpec};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde_json::Value;

use crate::driver::capabilities::{self, Allowed};
use crate::driver::process::{self, TaskUser, dynamic_user, find_user};
use crate::driver::registry::{BuiltinDriver, DriverHost};
use crate::driver::{
    Capabilities, Driver, DriverError, Field, Fingerprint, FsIsolation, GroupNetworks, Health, Known,
    RunningTask, Schema, StartError, Started, TaskConfig, TaskDevice, TaskMount, ValueType, Values,
};
use crate::task::hooks::workload_users;

pub const BUILTIN: BuiltinDriver = BuiltinDriver {
    name: NAME,
    plugin_schema: Schema(&[
        OPERATOR,
        &[
            // For hosts whose root is in memory.
            Field::optional("no_pivot_root", ValueType::Boolean),
            // Ranges of user and group numbers that no task may run as, like `0,10-15`.
            Field::optional("denied_host_uids", ValueType::Text),
            Field::optional("denied_host_gids", ValueType::Text),
        ],
    ]),
    dev_config: &[],
    legacy_options: &[],
    make,
};

const NAME: &str = "exec";

/// What operators say about isolated tasks of any driver.
pub(super) const OPERATOR: &[Field] = &[
    // `private` or `host`: what tasks get that do not say it themselves.
    Field::optional("default_pid_mode", ValueType::Text),
    Field::optional("default_ipc_mode", ValueType::Text),
    Field::optional("allow_caps", ValueType::TextList),
];

const TASK: Schema = Schema(&[
    &[Field::required("command", ValueType::Text), Field::optional("args", ValueType::TextList)],
    ISOLATED,
]);

/// What jobs say about the isolation of a task of any driver.
pub(super) const ISOLATED: &[Field] = &[
    Field::optional("work_dir", ValueType::Text),
    Field::optional("pid_mode", ValueType::Text),
    Field::optional("ipc_mode", ValueType::Text),
    Field::optional("cap_add", ValueType::TextList),
    Field::optional("cap_drop", ValueType::TextList),
    // Ours: both are on unless the user is root.
    Field::optional("no_new_privileges", ValueType::Boolean),
    Field::optional("seccomp", ValueType::Boolean),
    // Ours: a user that no other task of the node has.
    Field::optional("dynamic_user", ValueType::Boolean),
    // Ours: the same, and root for the task, in a user namespace.
    Field::optional("user_namespace", ValueType::Boolean),
];

/// The user of a task that names none.
const USER: &str = "nobody";

const USER_NAMESPACE: &str = "user_namespace";

/// What of the host a task sees unless the operator says otherwise, each at its own path.
const CHROOT: [&str; 9] =
    ["/bin", "/etc", "/lib", "/lib32", "/lib64", "/run/resolvconf", "/run/systemd/resolve", "/sbin", "/usr"];

/// Where hosts keep secrets beside what all may read: of these the task sees what its user may.
const PRIVATE: &str = "/etc";

pub(super) const NOT_ROOT: &str = "Driver must run as root";
const NO_CGROUPS: &str = "Failed to discover cgroup mount point";

#[derive(Debug)]
struct ExecDriver(Isolated);

fn make(config: &Values, host: &DriverHost) -> Option<Arc<dyn Driver>> {
    Some(Arc::new(ExecDriver(Isolated { config: config.clone(), host: host.clone() })))
}

impl Driver for ExecDriver {
    fn name(&self) -> &str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            signals: true,
            exec: true,
            fs_isolation: FsIsolation::Chroot,
            mounts: true,
            device_permissions: false,
        }
    }

    fn group_networks(&self) -> GroupNetworks {
        GroupNetworks::Joins
    }

    fn has_dynamic_users(&self) -> bool {
        true
    }

    fn task_schema(&self) -> Option<Schema> {
        Some(TASK)
    }

    fn fingerprint(&self) -> BoxStream<'static, Fingerprint> {
        let healthy = || Fingerprint::healthy([("driver.exec".to_string(), "1".to_string())]);
        self.0.usable().map_or_else(unusable, |()| healthy()).once()
    }

    fn start(&self, config: TaskConfig) -> BoxFuture<'_, Result<Started, StartError>> {
        Box::pin(async move {
            let keys = &config.config;
            let command = keys.text("command").expect("the schema requires a command").to_string();
            let args = keys.texts("args").to_vec();
            self.0.start(config, command, args).await
        })
    }

    fn recover<'a>(&'a self, state: &'a Value) -> BoxFuture<'a, Result<Arc<dyn RunningTask>, DriverError>> {
        Box::pin(async move { process::recover(state) })
    }

    fn destroy<'a>(&'a self, state: &'a Value, force: bool) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(process::destroy(state, force))
    }

    fn end_unknown<'a>(&'a self, known: &'a Known) -> BoxFuture<'a, ()> {
        Box::pin(self.0.host.executors.end_unknown(&known.handles))
    }
}

/// The fingerprint of a driver of isolated tasks where there can be none.
pub(super) fn unusable(why: &'static str) -> Fingerprint {
    let health = if why == NOT_ROOT { Health::Undetected } else { Health::Unhealthy };
    Fingerprint { health, description: why.to_string(), attributes: BTreeMap::new() }
}

/// What the drivers of isolated tasks share: only the program differs.
#[derive(Debug)]
pub(super) struct Isolated {
    /// Of the `plugin` block.
    pub config: Values,
    pub host: DriverHost,
}

impl Isolated {
    /// # Errors
    /// Why this host isolates nothing.
    pub fn usable(&self) -> Result<(), &'static str> {
        if !rustix::process::geteuid().is_root() {
            return Err(NOT_ROOT);
        }
        self.host.executors.cgroup_parent.as_ref().map(|_| ()).ok_or(NO_CGROUPS)
    }

    /// # Errors
    /// When the task does not run.
    pub async fn start(
        &self,
        config: TaskConfig,
        command: String,
        args: Vec<String>,
    ) -> Result<Started, StartError> {
        self.usable().map_err(StartError::fatal)?;
        let spec = self.spec(&config, command, args)?;
        self.host.executors.start(&config.alloc_id, &config.instance, &spec).await
    }

    /// What the executor runs.
    ///
    /// # Errors
    /// When the job asks for what is not possible or not allowed.
    fn spec(
        &self,
        config: &TaskConfig,
        command: String,
        args: Vec<String>,
    ) -> Result<ExecutorSpec, StartError> {
        let keys = &config.config;
        let work_dir = PathBuf::from(keys.text("work_dir").unwrap_or("/"));
        if !work_dir.is_absolute() {
            return Err(StartError::Invalid("work_dir must be an absolute path".into()));
        }
        let mut env = config.env.clone();
        let user = self.user(config, &mut env)?;
        Ok(ExecutorSpec {
            command: PathBuf::from(command),
            args,
            user: Some(user.ids),
            groups: Vec::new(),
            oom_score_adj: None,
            open_files: self.host.executors.open_files,
            cgroup: self.host.executors.cgroup(config),
            network_namespace: config.network_namespace.clone(),
            work_dir,
            stdout: config.logs.as_ref().map(|logs| logs.stdout.clone()),
            stderr: config.logs.as_ref().map(|logs| logs.stderr.clone()),
            isolation: Some(self.isolation(config, &user)?),
            env,
        })
    }

    fn user(&self, config: &TaskConfig, env: &mut BTreeMap<String, String>) -> Result<TaskUser, StartError> {
        let [uids, gids] =
            ["denied_host_uids", "denied_host_gids"].map(|key| self.config.text(key).unwrap_or_default());
        let asked = workload_users::KEYS.iter().any(|key| config.config.boolean(key));
        workload_users::check(asked, config.dynamic_user.as_ref().map(|user| user.uid))?;
        if let Some(user) = &config.dynamic_user {
            let user = dynamic_user(user, uids, gids, env)?;
            if config.config.boolean(USER_NAMESPACE) {
                env.extend(["USER", "LOGNAME"].map(|name| (name.to_string(), "root".to_string())));
            }
            return Ok(user);
        }
        let name = if config.user.is_empty() { USER } else { &config.user };
        let missing = || StartError::fatal(format!("failed to find user \"{name}\""));
        find_user(name, uids, gids, env)?.ok_or_else(missing)
    }

    fn isolation(&self, config: &TaskConfig, user: &TaskUser) -> Result<IsolationSpec, StartError> {
        let keys = &config.config;
        let invalid = StartError::Invalid;
        let root = user.ids.uid == 0;
        let allowed = Allowed::read(self.config.texts("allow_caps"));
        let (capabilities, without) =
            capabilities::of_process(&allowed, root, keys.texts("cap_add"), keys.texts("cap_drop"))
                .map_err(invalid)?;
        let no_new_privileges = keys.flag("no_new_privileges").unwrap_or(!root);
        let seccomp = keys.flag("seccomp").unwrap_or(no_new_privileges);
        if seccomp && !no_new_privileges {
            let text = "seccomp = true needs no_new_privileges = true: a filter must not pass to a program with more rights";
            return Err(invalid(text.into()));
        }
        Ok(IsolationSpec {
            root: config.dir.root.clone(),
            no_pivot_root: self.config.boolean("no_pivot_root"),
            host_pids: self.host_mode("pid", keys).map_err(invalid)?,
            host_ipc: self.host_mode("ipc", keys).map_err(invalid)?,
            layers: self.layers(config).map_err(StartError::transient)?,
            hidden: self.hidden(config),
            private: vec![PathBuf::from(PRIVATE)],
            mounts: mounts(config).map_err(invalid)?,
            devices: config.devices.iter().map(device).collect(),
            groups: user.groups.clone(),
            user_namespace: keys.boolean(USER_NAMESPACE),
            capabilities,
            without,
            no_new_privileges,
            seccomp,
        })
    }

    /// Whether the task shares the processes (`pid`) or the shared memory (`ipc`) of the host.
    fn host_mode(&self, of: &str, keys: &Values) -> Result<bool, String> {
        let own = format!("{of}_mode");
        let (key, mode) = match keys.text(&own) {
            Some(mode) => (own, mode),
            None => {
                let key = format!("default_{of}_mode");
                let mode = self.config.text(&key).unwrap_or("private");
                (key, mode)
            }
        };
        match mode {
            "private" => Ok(false),
            "host" => Ok(true),
            other => Err(format!("{key} must be \"private\" or \"host\", got \"{other}\"")),
        }
    }

    /// What of the host the task sees, each with a place for what the task changes there: beside its directory, where
    /// it is removed with the allocation, and where the task itself cannot reach it.
    fn layers(&self, config: &TaskConfig) -> std::io::Result<Vec<LayerSpec>> {
        let changes = alloc_dir(config).join(format!(".{}", config.task));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&changes)?;
        let configured = &self.host.chroot_env;
        let usual = || CHROOT.iter().map(|path| (PathBuf::from(path), PathBuf::from(path))).collect();
        let wanted: BTreeMap<PathBuf, PathBuf> =
            if configured.is_empty() { usual() } else { configured.clone() };
        let mut layers: Vec<LayerSpec> = wanted
            .into_iter()
            .map(|(source, target)| {
                let changes = Some(changes.join(file_name(&target)));
                LayerSpec { source, target, changes }
            })
            .collect();
        // What is inside of another comes after it.
        layers.sort_by(|one, other| one.target.cmp(&other.target));
        Ok(layers)
    }

    /// What no layer may show, whatever the operator lists: the directories of other tasks, and the agent's own.
    fn hidden(&self, config: &TaskConfig) -> Vec<PathBuf> {
        let allocs = alloc_dir(config).parent().map(Path::to_path_buf);
        let state = self.host.state_dir.canonicalize().unwrap_or_else(|_| self.host.state_dir.clone());
        allocs.into_iter().chain([state]).collect()
    }
}

/// The directory of the allocation.
fn alloc_dir(config: &TaskConfig) -> PathBuf {
    config.shared_dir.parent().unwrap_or(&config.shared_dir).to_path_buf()
}

/// A name for a file that stands for this path and no other.
fn file_name(path: &Path) -> String {
    path.to_string_lossy().replace('_', "__").replace('/', "_")
}

/// What the tasks of the allocation share, and the volumes of the group.
fn mounts(config: &TaskConfig) -> Result<Vec<MountSpec>, String> {
    let of_alloc = |source: PathBuf, target: &str, read_only| MountSpec {
        source,
        target: PathBuf::from(target),
        read_only,
        follows_host: false,
    };
    let mut mounts = vec![
        of_alloc(config.shared_dir.clone(), "/alloc", false),
        // Its output is written for it; what it says itself must not be lost in between.
        of_alloc(config.shared_dir.join("logs"), "/alloc/logs", true),
    ];
    let names = [(&config.hosts_file, "/etc/hosts"), (&config.resolv_conf, "/etc/resolv.conf")];
    for (file, target) in names {
        mounts.extend(file.clone().map(|file| of_alloc(file, target, true)));
    }
    for mount in &config.mounts {
        mounts.push(volume(mount)?);
    }
    Ok(mounts)
}

fn device(device: &TaskDevice) -> DeviceSpec {
    DeviceSpec { source: device.host_path.clone(), target: PathBuf::from(&device.task_path) }
}

fn volume(mount: &TaskMount) -> Result<MountSpec, String> {
    let target = &mount.task_path;
    if !mount.selinux_label.is_empty() {
        return Err(format!("volume_mount \"{target}\": driver exec sets no selinux_label"));
    }
    let follows_host = match mount.propagation {
        "rprivate" => false,
        "rslave" => true,
        _ => {
            let text = "propagation_mode \"bidirectional\" is not possible with driver exec";
            return Err(format!("volume_mount \"{target}\": {text}"));
        }
    };
    Ok(MountSpec {
        source: mount.host_path.clone(),
        target: PathBuf::from(target),
        read_only: mount.read_only,
        follows_host,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::driver::process::Executors;
    use crate::settings::DeniedUsers;
    use crate::testing::task_config;

    fn driver(plugin: Value, base: &Path) -> Isolated {
        let block = serde_json::from_value(plugin).unwrap();
        let executors = Executors {
            directory: base.join("executors"),
            program: PathBuf::new(),
            open_files: None,
            cgroup_parent: None,
        };
        let host = DriverHost {
            executors,
            node_id: String::new(),
            state_dir: base.join("client"),
            chroot_env: BTreeMap::new(),
            denied_users: DeniedUsers::default(),
        };
        Isolated { config: Values::read(NAME, BUILTIN.plugin_schema, block).unwrap(), host }
    }

    fn task(base: &Path, mut keys: Value) -> TaskConfig {
        keys["command"] = json!("sh");
        let mut config = task_config();
        config.shared_dir = base.join("alloc/id/alloc");
        config.config = Values::read(NAME, TASK, serde_json::from_value(keys).unwrap()).unwrap();
        config
    }

    fn spec(plugin: Value, user: &str, keys: Value) -> Result<ExecutorSpec, String> {
        let base = tempfile::tempdir().unwrap();
        let mut config = task(base.path(), keys);
        config.user = user.to_string();
        driver(plugin, base.path())
            .spec(&config, "sh".to_string(), Vec::new())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_task_is_confined_unless_it_is_root_or_the_job_says_so() {
        let confined = |user, keys| {
            let isolation = spec(json!({}), user, keys).unwrap().isolation.unwrap();
            (isolation.no_new_privileges, isolation.seccomp)
        };
        assert_eq!(confined("", json!({})), (true, true));
        assert_eq!(confined("root", json!({})), (false, false));
        assert_eq!(confined("", json!({"seccomp": false})), (true, false));
        assert_eq!(confined("", json!({"no_new_privileges": false})), (false, false));
        assert_eq!(confined("root", json!({"no_new_privileges": true})), (true, true));
        let both = json!({"no_new_privileges": false, "seccomp": true});
        assert!(spec(json!({}), "", both).unwrap_err().starts_with("seccomp = true needs no_new_privileges"));
    }

    #[test]
    fn a_task_without_a_user_is_nobody() {
        let spec = spec(json!({}), "", json!({})).unwrap();
        assert_eq!(spec.env["USER"], "nobody");
        assert_ne!(spec.user.unwrap().uid, 0);
        assert_eq!(spec.work_dir, Path::new("/"));
    }

    #[test]
    fn the_operator_says_what_a_job_leaves_open() {
        let modes = |plugin, keys| {
            let isolation = spec(plugin, "", keys).unwrap().isolation.unwrap();
            (isolation.host_pids, isolation.host_ipc)
        };
        let host = json!({"default_pid_mode": "host", "default_ipc_mode": "host"});
        assert_eq!(modes(json!({}), json!({})), (false, false));
        assert_eq!(modes(host.clone(), json!({})), (true, true));
        assert_eq!(modes(host, json!({"pid_mode": "private"})), (false, true));
    }

    #[test]
    fn what_cannot_be_had_is_named() {
        let cases = [
            (
                json!({}),
                json!({"pid_mode": "none"}),
                "pid_mode must be \"private\" or \"host\", got \"none\"",
            ),
            (
                json!({"default_ipc_mode": "x"}),
                json!({}),
                "default_ipc_mode must be \"private\" or \"host\", got \"x\"",
            ),
            (json!({}), json!({"work_dir": "here"}), "work_dir must be an absolute path"),
            (
                json!({}),
                json!({"cap_add": ["sys_admin"]}),
                "driver does not allow the following capabilities: sys_admin",
            ),
            (json!({"denied_host_uids": "65534"}), json!({}), "running as user \"nobody\" is not allowed"),
        ];
        for (plugin, keys, text) in cases {
            assert_eq!(spec(plugin, "", keys).unwrap_err(), text);
        }
        assert_eq!(spec(json!({}), "no-such", json!({})).unwrap_err(), "failed to find user \"no-such\"");
    }

    #[test]
    fn volumes_are_mounted_as_far_as_that_can_be_done() {
        let base = tempfile::tempdir().unwrap();
        let with = |propagation, label: &str| {
            let mut config = task(base.path(), json!({}));
            let (host_path, task_path) = (PathBuf::from("/srv/disk"), "/data".to_string());
            let selinux_label = label.to_string();
            config.mounts =
                vec![TaskMount { host_path, task_path, read_only: true, propagation, selinux_label }];
            mounts(&config).map(|mounts| mounts.last().unwrap().clone())
        };
        let mounted = with("rslave", "").unwrap();
        assert_eq!((mounted.target.to_str(), mounted.read_only), (Some("/data"), true));
        assert!(mounted.follows_host);
        assert!(with("rshared", "").unwrap_err().contains("\"bidirectional\" is not possible"));
        assert!(with("rprivate", "z").unwrap_err().contains("sets no selinux_label"));
    }
}

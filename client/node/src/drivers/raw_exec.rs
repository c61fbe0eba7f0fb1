//! Tasks as plain processes of the host, each below an executor.
//!
//! Nothing isolates them. They end together with every process they have started: the executor is the reaper of all
//! orphans of its task and kills them, even where the host has no control groups. Memory and CPU limits need control
//! groups of version 2, writable at the usual place; without them a task has no limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use executor::cgroup;
use executor::spec::{CgroupSpec, ExecutorSpec};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde_json::Value;

use crate::driver::process::{self, Executors, find_command, find_user};
use crate::driver::registry::{BuiltinDriver, DriverHost};
use crate::driver::{
    Capabilities, Driver, DriverError, Field, Fingerprint, FsIsolation, GroupNetworks, Known, RunningTask,
    Schema, StartError, Started, TaskConfig, ValueType, Values,
};

pub const BUILTIN: BuiltinDriver = BuiltinDriver {
    name: NAME,
    plugin_schema: Schema(&[&[
        Field::optional("enabled", ValueType::Boolean),
        // Ranges of user and group numbers that no task may run as, like `0,10-15`.
        Field::optional("denied_host_uids", ValueType::Text),
        Field::optional("denied_host_gids", ValueType::Text),
        // Patterns (`*` for anything) of variables that no task gets.
        Field::optional("denied_envvars", ValueType::TextList),
    ]]),
    dev_config: &[("enabled", true)],
    legacy_options: &[("driver.raw_exec.enable", "enabled")],
    make,
};

const NAME: &str = "raw_exec";

const TASK: Schema = Schema(&[&[
    Field::required("command", ValueType::Text),
    Field::optional("args", ValueType::TextList),
    Field::optional("work_dir", ValueType::Text),
    Field::optional("oom_score_adj", ValueType::Number),
    Field::optional("denied_envvars", ValueType::TextList),
    Field::optional("cgroup_v2_override", ValueType::Text),
    Field::optional(
        "cgroup_v1_override",
        ValueType::Unsupported("name a group of version 2 with cgroup_v2_override"),
    ),
]]);

#[derive(Debug)]
struct RawExec {
    /// Of the `plugin` block.
    config: Values,
    executors: Executors,
}

fn make(config: &Values, host: &DriverHost) -> Option<Arc<dyn Driver>> {
    Some(Arc::new(RawExec { config: config.clone(), executors: host.executors.clone() }))
}

impl Driver for RawExec {
    fn name(&self) -> &str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            signals: true,
            exec: true,
            fs_isolation: FsIsolation::None,
            mounts: false,
            device_permissions: false,
        }
    }

    fn group_networks(&self) -> GroupNetworks {
        GroupNetworks::Joins
    }

    fn task_schema(&self) -> Option<Schema> {
        Some(TASK)
    }

    fn fingerprint(&self) -> BoxStream<'static, Fingerprint> {
        let fingerprint = match self.config.boolean("enabled") {
            true => Fingerprint::healthy([("driver.raw_exec".to_string(), "1".to_string())]),
            false => Fingerprint::undetected("disabled"),
        };
        fingerprint.once()
    }

    fn start(&self, config: TaskConfig) -> BoxFuture<'_, Result<Started, StartError>> {
        Box::pin(async move {
            if !self.config.boolean("enabled") {
                return Err(StartError::fatal("raw_exec is disabled"));
            }
            let (alloc_id, instance) = (config.alloc_id.clone(), config.instance.clone());
            let spec = self.spec(config)?;
            self.executors.start(&alloc_id, &instance, &spec).await
        })
    }

    fn recover<'a>(&'a self, state: &'a Value) -> BoxFuture<'a, Result<Arc<dyn RunningTask>, DriverError>> {
        Box::pin(async move { process::recover(state) })
    }

    fn destroy<'a>(&'a self, state: &'a Value, force: bool) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(process::destroy(state, force))
    }

    fn end_unknown<'a>(&'a self, known: &'a Known) -> BoxFuture<'a, ()> {
        Box::pin(self.executors.end_unknown(&known.handles))
    }
}

impl RawExec {
    fn spec(&self, config: TaskConfig) -> Result<ExecutorSpec, StartError> {
        let keys = &config.config;
        let work_dir = keys.text("work_dir").map(PathBuf::from);
        if work_dir.as_ref().is_some_and(|path| !path.is_absolute()) {
            return Err(StartError::Invalid("work_dir must be an absolute path".into()));
        }
        let oom_score_adj = keys.number("oom_score_adj");
        if oom_score_adj.is_some_and(|score| !(0..=1000).contains(&score)) {
            return Err(StartError::Invalid("oom_score_adj must be between 0 and 1000".into()));
        }
        let mut env = config.env.clone();
        let denied = self.config.texts("denied_envvars").iter().chain(keys.texts("denied_envvars"));
        let denied: Vec<&String> = denied.collect();
        env.retain(|name, _| !denied.iter().any(|pattern| base::matches_glob(pattern, name)));
        let [uids, gids] =
            ["denied_host_uids", "denied_host_gids"].map(|key| self.config.text(key).unwrap_or_default());
        let user = find_user(&config.user, uids, gids, &mut env)?;
        let command = keys.text("command").expect("the schema requires a command");
        Ok(ExecutorSpec {
            command: find_command(command, &config.dir.root, env.get("PATH").map(String::as_str))?,
            args: keys.texts("args").to_vec(),
            user: user.as_ref().map(|user| user.ids),
            groups: user.map(|user| user.groups).unwrap_or_default(),
            oom_score_adj: oom_score_adj.map(|score| score as i32),
            open_files: self.executors.open_files,
            cgroup: self.cgroup(&config),
            network_namespace: config.network_namespace.clone(),
            work_dir: work_dir.unwrap_or(config.dir.root),
            stdout: config.logs.as_ref().map(|logs| logs.stdout.clone()),
            stderr: config.logs.map(|logs| logs.stderr),
            isolation: None,
            env,
        })
    }

    /// The job's own control group, or one with the limits of the task.
    fn cgroup(&self, config: &TaskConfig) -> Option<CgroupSpec> {
        let Some(path) = config.config.text("cgroup_v2_override") else {
            return self.executors.cgroup(config);
        };
        let path = Path::new(cgroup::ROOT).join(path);
        Some(CgroupSpec { path, managed: false, ..CgroupSpec::default() })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text, expected) in [
            ("AWS_*", "AWS_KEY", true),
            ("*KEY", "AWS_KEY", true),
            ("A*S*Y", "AWS_KEY", true),
            ("AWS", "AWS_KEY", false),
            ("*", "", true),
        ] {
            assert_eq!(base::matches_glob(pattern, text), expected, "{pattern} {text}");
        }
    }
}

//! The drivers of a node, by name: made from the agent's configuration, found by jobs and by stored handles.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base::Time;
use futures_util::stream::{self, BoxStream, StreamExt};
use model::document::{DriverInfo, Map, Node, Timestamp};
use serde_json::Value;

use super::process::Executors;
use super::{
    Capabilities, Driver, DriverError, DriverEvent, DriverNetwork, ExecError, Fingerprint, GroupNetworks,
    Health, Known, RunningTask, Schema, StartError, TaskConfig, TaskHandle, Values,
};
use crate::settings::{DeniedUsers, NameFilter};

/// The `config` blocks of the agent's `plugin` blocks, by driver.
pub type PluginConfigs = BTreeMap<String, BTreeMap<String, Value>>;

/// A driver that this program contains: one entry in [`crate::drivers::BUILTIN`].
#[derive(Debug)]
pub struct BuiltinDriver {
    pub name: &'static str,
    /// The keys of `config` in the agent's `plugin "<name>"` block.
    pub plugin_schema: Schema,
    /// What a development agent sets in that block unless the operator says otherwise.
    pub dev_config: &'static [(&'static str, bool)],
    /// Keys of `client.options` that set a boolean of that block: the older spelling.
    pub legacy_options: &'static [(&'static str, &'static str)],
    /// Makes the driver; `None` when its configuration leaves it out altogether.
    pub make: fn(&Values, &DriverHost) -> Option<Arc<dyn Driver>>,
}

/// What the agent gives to its drivers.
#[derive(Clone, Debug)]
pub struct DriverHost {
    pub executors: Executors,
    /// Tells this node's tasks from those of others on the same host.
    pub node_id: String,
    /// Where a driver may keep files of its own, in a directory of its name; 0700.
    pub state_dir: PathBuf,
    /// As [`crate::NodeSettings::chroot_env`].
    pub chroot_env: BTreeMap<PathBuf, PathBuf>,
    pub denied_users: DeniedUsers,
}

/// A task that was started, with the handle to store.
#[derive(Debug)]
pub struct StartedTask {
    pub task: Arc<dyn RunningTask>,
    pub handle: TaskHandle,
    pub network: Option<DriverNetwork>,
}

/// The drivers of this node.
#[derive(Clone, Debug, Default)]
pub struct Drivers {
    by_name: BTreeMap<Arc<str>, Arc<dyn Driver>>,
    denied_users: DeniedUsers,
}

impl Drivers {
    /// The drivers of `builtin` that `filter` allows, as the configuration asks for them.
    ///
    /// # Errors
    /// When a block does not fit the schema of its driver, or names no driver.
    pub fn configured(
        builtin: &[&BuiltinDriver],
        filter: &NameFilter,
        plugins: &PluginConfigs,
        host: &DriverHost,
    ) -> Result<Drivers, String> {
        if let Some(name) = plugins.keys().find(|name| builtin.iter().all(|driver| driver.name != *name)) {
            return Err(format!("plugin \"{name}\": unknown driver"));
        }
        let mut drivers = Drivers { denied_users: host.denied_users.clone(), ..Drivers::default() };
        for entry in builtin.iter().filter(|entry| filter.allows(entry.name)) {
            let block = plugins.get(entry.name).cloned().unwrap_or_default();
            let config = Values::read(entry.name, entry.plugin_schema, block)
                .map_err(|error| format!("plugin \"{}\": {error}", entry.name))?;
            if let Some(driver) = (entry.make)(&config, host) {
                drivers.add(driver);
            }
        }
        Ok(drivers)
    }

    /// Adds a driver; one of the same name is replaced.
    pub fn add(&mut self, driver: Arc<dyn Driver>) {
        self.by_name.insert(driver.name().into(), driver);
    }

    /// # Errors
    /// When this node has no such driver.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Driver>, StartError> {
        let missing = || StartError::fatal(format!("failed to get driver \"{name}\": unknown driver"));
        self.by_name.get(name).ok_or_else(missing)
    }

    fn of(&self, handle: &TaskHandle) -> Result<&Arc<dyn Driver>, DriverError> {
        let found = self.by_name.values().find(|driver| driver.handle_key() == handle.key);
        found.ok_or(DriverError::UnknownDriver)
    }

    /// Starts a task whose `config` block is `block`.
    ///
    /// # Errors
    /// When there is no such driver here, the block does not fit its schema, or the task does not start.
    pub async fn start(
        &self,
        driver: &str,
        mut config: TaskConfig,
        block: BTreeMap<String, Value>,
    ) -> Result<StartedTask, StartError> {
        let driver = self.get(driver)?;
        match driver.task_schema() {
            Some(schema) => {
                config.config = Values::read(driver.name(), schema, block).map_err(StartError::Invalid)?;
            }
            None => config.block = block,
        }
        self.check_user(driver.name(), &config.user)?;
        let started = driver.start(config).await?;
        let handle = TaskHandle { key: driver.handle_key().to_string(), state: started.state };
        Ok(StartedTask { task: started.task, handle, network: started.network })
    }

    /// # Errors
    /// When the operator wants no task of this driver to run as this user, by name or number.
    fn check_user(&self, driver: &str, user: &str) -> Result<(), StartError> {
        if !self.denied_users.drivers.contains(driver) {
            return Ok(());
        }
        let numbered = user
            .parse()
            .ok()
            .and_then(|uid| nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid)).ok().flatten());
        let name = numbered.map_or_else(|| user.to_string(), |user| user.name);
        match self.denied_users.names.contains(&name) {
            true => Err(StartError::Invalid(format!("running as user \"{name}\" is disallowed"))),
            false => Ok(()),
        }
    }

    /// # Errors
    /// When tasks of this driver cannot be sent signals.
    pub fn check_signals(&self, driver: &str) -> Result<(), DriverError> {
        match self.capabilities(driver) {
            Some(Capabilities { signals: false, .. }) => {
                Err(DriverError::Failed(format!("driver {driver} does not support sending signals")))
            }
            _ => Ok(()),
        }
    }

    /// # Errors
    /// When no commands can be run in tasks of this driver.
    pub fn check_exec(&self, driver: &str) -> Result<(), ExecError> {
        match self.capabilities(driver) {
            Some(Capabilities { exec: false, .. }) => {
                Err(ExecError::Refused(format!("driver {driver} does not support running commands")))
            }
            _ => Ok(()),
        }
    }

    /// None for a driver that this node does not have.
    pub fn capabilities(&self, driver: &str) -> Option<Capabilities> {
        self.by_name.get(driver).map(|driver| driver.capabilities())
    }

    /// None for a driver that this node does not have.
    pub fn group_networks(&self, driver: &str) -> Option<GroupNetworks> {
        self.by_name.get(driver).map(|driver| driver.group_networks())
    }

    /// Has a driver make the network namespace of an allocation; returns its path.
    ///
    /// # Errors
    /// When it cannot.
    pub async fn create_network(
        &self,
        driver: &str,
        alloc_id: &str,
        hostname: Option<&str>,
    ) -> Result<PathBuf, DriverError> {
        let driver = self.by_name.get(driver).ok_or(DriverError::UnknownDriver)?;
        driver.create_network(alloc_id, hostname).await
    }

    /// # Errors
    /// When something may be left.
    pub async fn destroy_network(&self, driver: &str, alloc_id: &str) -> Result<(), DriverError> {
        let driver = self.by_name.get(driver).ok_or(DriverError::UnknownDriver)?;
        driver.destroy_network(alloc_id).await
    }

    /// Finds a task that an earlier agent started.
    ///
    /// # Errors
    /// When neither the task nor a record of its exit can be found.
    pub async fn recover(&self, handle: &TaskHandle) -> Result<Arc<dyn RunningTask>, DriverError> {
        self.of(handle)?.recover(&handle.state).await
    }

    /// Removes what is left of a task, which is ended if it still runs.
    pub async fn destroy(&self, handle: &TaskHandle) {
        let Ok(driver) = self.of(handle) else { return };
        if let Err(error) = driver.destroy(&handle.state, true).await {
            tracing::warn!(driver = driver.name(), %error, "what a task left was not removed");
        }
    }

    /// Ends tasks that none of the stored handles names.
    pub async fn end_unknown(&self, known: &Known) {
        for driver in self.by_name.values() {
            driver.end_unknown(known).await;
        }
    }

    /// The current fingerprint of each driver, put into `node`.
    pub async fn fingerprint(&self, node: &mut Node, now: Time) {
        for (name, fingerprint) in self.fingerprinted().await {
            apply(node, &name, fingerprint, now);
        }
    }

    /// The current fingerprint of each driver.
    pub async fn fingerprinted(&self) -> Vec<(Arc<str>, Fingerprint)> {
        let mut found = Vec::new();
        for (name, driver) in &self.by_name {
            found
                .extend(driver.fingerprint().next().await.map(|fingerprint| (Arc::clone(name), fingerprint)));
        }
        found
    }

    /// The fingerprints of all drivers as they come, with the names of their drivers.
    pub fn fingerprints(&self) -> BoxStream<'static, (Arc<str>, Fingerprint)> {
        let streams = self.by_name.iter().map(|(name, driver)| {
            let name = Arc::clone(name);
            driver.fingerprint().map(move |fingerprint| (Arc::clone(&name), fingerprint)).boxed()
        });
        stream::select_all(streams).boxed()
    }

    /// The messages of all drivers as they come.
    pub fn events(&self) -> BoxStream<'static, DriverEvent> {
        stream::select_all(self.by_name.values().map(|driver| driver.events())).boxed()
    }
}

/// True when the fingerprint says something else than `node` does.
pub fn is_change(node: &Node, name: &str, fingerprint: &Fingerprint) -> bool {
    let known = node.drivers.get(name);
    let info = info(fingerprint.clone(), Time::ZERO);
    known.is_none_or(|known| DriverInfo { update_time: info.update_time, ..known.clone() } != info)
}

/// Replaces what `node` says about a driver.
pub fn apply(node: &mut Node, name: &str, fingerprint: Fingerprint, now: Time) {
    let gone = node.drivers.get(name).map(|old| old.attributes.0.clone()).unwrap_or_default();
    node.attributes.0.retain(|key, _| !gone.contains_key(key));
    node.attributes.0.extend(fingerprint.attributes.clone());
    node.drivers.0.insert(name.to_string(), info(fingerprint, now));
}

fn info(fingerprint: Fingerprint, now: Time) -> DriverInfo {
    DriverInfo {
        attributes: Map(fingerprint.attributes),
        detected: fingerprint.health != Health::Undetected,
        healthy: fingerprint.health == Health::Healthy,
        health_description: fingerprint.description,
        update_time: Timestamp::from(now),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::drivers::BUILTIN;

    fn host() -> DriverHost {
        let executors = Executors {
            directory: PathBuf::from("/nowhere"),
            program: PathBuf::from("/nowhere"),
            open_files: None,
            cgroup_parent: None,
        };
        DriverHost {
            executors,
            node_id: "n".to_string(),
            state_dir: PathBuf::from("/nowhere"),
            chroot_env: BTreeMap::new(),
            denied_users: DeniedUsers::default(),
        }
    }

    fn configured(plugins: Value) -> Result<Drivers, String> {
        let filter = NameFilter::default();
        Drivers::configured(BUILTIN, &filter, &serde_json::from_value(plugins).unwrap(), &host())
    }

    async fn infos(drivers: &Drivers) -> BTreeMap<String, DriverInfo> {
        let mut node = Node::default();
        drivers.fingerprint(&mut node, Time::from_secs(1)).await;
        node.drivers.0
    }

    #[tokio::test]
    async fn the_configuration_says_which_drivers_there_are() {
        let plain = infos(&configured(json!({})).unwrap()).await;
        assert_eq!(
            plain.keys().collect::<Vec<_>>(),
            ["docker", "exec", "java", "podman", "qemu", "raw_exec"]
        );
        assert_eq!(
            (plain["raw_exec"].detected, plain["raw_exec"].health_description.as_str()),
            (false, "disabled")
        );
        let both = json!({"raw_exec": {"enabled": true}, "mock_driver": {"enabled": true}});
        let both = infos(&configured(both).unwrap()).await;
        assert!(both["raw_exec"].healthy && both["mock_driver"].healthy);
        assert_eq!(both["raw_exec"].attributes["driver.raw_exec"], "1");
    }

    #[test]
    fn a_user_is_denied_to_the_drivers_that_are_checked() {
        let drivers = configured(json!({})).unwrap();
        for user in ["root", "0"] {
            let error = drivers.check_user("exec", user).unwrap_err().to_string();
            assert_eq!(error, "running as user \"root\" is disallowed");
            drivers.check_user("raw_exec", user).unwrap();
        }
        for user in ["", "nobody"] {
            drivers.check_user("exec", user).unwrap();
        }
    }

    #[test]
    fn mistakes_in_plugin_blocks_are_named() {
        let error = configured(json!({"lxc": {}})).unwrap_err();
        assert_eq!(error, "plugin \"lxc\": unknown driver");
        let error = configured(json!({"raw_exec": {"enabeld": true}})).unwrap_err();
        assert_eq!(error, "plugin \"raw_exec\": driver raw_exec has no config key \"enabeld\"");
    }

    #[tokio::test]
    async fn an_unknown_driver_and_its_handles_are_errors() {
        let drivers = configured(json!({})).unwrap();
        assert_eq!(
            drivers.get("mock_driver").unwrap_err().to_string(),
            "failed to get driver \"mock_driver\": unknown driver"
        );
        let handle = TaskHandle { key: "mock".to_string(), state: Value::Null };
        assert_eq!(drivers.recover(&handle).await.unwrap_err(), DriverError::UnknownDriver);
    }

    /// Written by the first release, byte by byte.
    #[tokio::test]
    async fn handles_of_older_agents_are_read() {
        let drivers = configured(json!({"mock_driver": {"enabled": true}})).unwrap();
        let mock = r#"{"mock":{"script":{"run_for":{"secs":0,"nanos":1000000},"kill_after":{"secs":0,"nanos":0},
            "plugin_exit_after":{"secs":0,"nanos":0},"exit":{"code":3,"signal":0,"oom_killed":false,"error":null},
            "signal_error":"","stdout":{"text":"","repeat":0,"pause":{"secs":0,"nanos":0}},
            "stderr":{"text":"","repeat":0,"pause":{"secs":0,"nanos":0}}},"exec":null,"started_at":1}}"#;
        let task = drivers.recover(&serde_json::from_str(mock).unwrap()).await.unwrap();
        let super::super::Outcome::Exited(exit) = task.wait().await else { panic!("the task was lost") };
        assert_eq!(exit.code, 3);

        let dir = tempfile::tempdir().unwrap();
        let state = r#"{"executor":{"pid":1073741823,"start_ticks":1,"boot_id":"x"},"task":{"pid":1073741822,"start_ticks":1,"boot_id":"x"}}"#;
        std::fs::write(dir.path().join("state.json"), state).unwrap();
        std::fs::write(
            dir.path().join("exit.json"),
            r#"{"code":5,"signal":0,"oom_killed":false,"error":null}"#,
        )
        .unwrap();
        let handle = format!(r#"{{"raw_exec":{{"directory":"{}"}}}}"#, dir.path().display());
        let task = drivers.recover(&serde_json::from_str(&handle).unwrap()).await.unwrap();
        let super::super::Outcome::Exited(exit) = task.wait().await else { panic!("the task was lost") };
        assert_eq!(exit.code, 5);
    }
}

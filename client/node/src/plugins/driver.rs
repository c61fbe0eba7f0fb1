//! A driver that is a plugin, as one of the node's drivers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use plugin::identify::ANSWER_TIMEOUT;
use plugin::proto::base::Empty;
use plugin::proto::driver::{self as proto, FsIsolation as PluginIsolation, NetworkMode};
use plugin::proto::hclspec::Spec;
use plugin::{CallError, Caller, hclspec};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::config::{self, Outside};
use super::host::Hosted;
use super::networks::Networks;
use super::outputs::Outputs;
use super::task::{PluginTask, TaskRecord, recover};
use crate::driver::{
    Capabilities, Driver, DriverError, DriverEvent, DriverNetwork, Fingerprint, FsIsolation, GroupNetworks,
    Health, Known, RunningTask, Schema, StartError, Started, TaskConfig,
};

/// How long a start waits for a plugin that has died.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// How long a driver may take to start a task; it may have to load an image.
const START_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How long a driver may take for the first fingerprint.
const FIRST_FINGERPRINT: Duration = Duration::from_secs(10);

/// Between two attempts to follow a plugin that runs and does not answer; doubled after each, up to the second.
const RETRY: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(120));

/// For the network of an allocation, whose image may have to be loaded.
const NETWORK_TIMEOUT: Duration = Duration::from_secs(10 * 60);

#[derive(Debug)]
pub struct PluginDriver {
    name: String,
    /// Of handles: never that of a driver in this program, which may have the same name.
    key: String,
    hosted: Arc<Hosted>,
    capabilities: proto::DriverCapabilities,
    schema: Spec,
    outputs: Outputs,
    networks: Networks,
    fingerprint: watch::Receiver<Option<Fingerprint>>,
    _follower: AbortOnDropHandle<()>,
}

impl PluginDriver {
    /// Asks a plugin what it can do, and follows its health from then on.
    ///
    /// # Errors
    /// When it does not say, or its schema cannot be read.
    pub async fn open(hosted: Arc<Hosted>, outputs: Outputs) -> Result<PluginDriver, String> {
        let caller = hosted.caller(ANSWER_TIMEOUT).await.map_err(|error| error.to_string())?;
        let fails = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
        let schema: proto::TaskConfigSchema = quick(&caller, "TaskConfigSchema", Empty {})
            .await
            .map_err(|error| fails("TaskConfigSchema", &error))?;
        let schema = schema.spec.ok_or("TaskConfigSchema: there is none")?;
        hclspec::check(&schema).map_err(|why| fails("TaskConfigSchema", &why))?;
        let can: proto::CapabilitiesResponse =
            quick(&caller, "Capabilities", Empty {}).await.map_err(|error| fails("Capabilities", &error))?;
        let name = hosted.identity.name.clone();
        let (sender, fingerprint) = watch::channel(None);
        let follower =
            AbortOnDropHandle::new(tokio::spawn(follow(Arc::clone(&hosted), name.clone(), sender)));
        Ok(PluginDriver {
            key: format!("plugin.{name}"),
            name,
            networks: Networks(hosted.directory.join("networks")),
            hosted,
            capabilities: can.capabilities.unwrap_or_default(),
            schema,
            outputs,
            fingerprint,
            _follower: follower,
        })
    }

    async fn start_task(&self, config: TaskConfig) -> Result<Started, StartError> {
        let block: Map<String, Value> = config.block.clone().into_iter().collect();
        let owner = format!("driver {}", self.name);
        let block = hclspec::read(&owner, &self.schema, &block).map_err(StartError::Invalid)?;
        let instance = self.hosted.instance(START_PATIENCE).await;
        let instance =
            instance.map_err(|error| StartError::transient(format!("driver {}: {error}", self.name)))?;
        let task_id = format!("{}/{}/{}", config.alloc_id, config.task, config.instance);
        let wanted = config.logs.clone().filter(|_| !self.capabilities.disable_log_collection);
        let record =
            TaskRecord { driver: self.key.clone(), task_id: task_id.clone(), ..TaskRecord::default() };
        let opened = self.outputs.open(&config.alloc_id, &config.instance, &record, wanted).await;
        let (directory, stdout_path, stderr_path) = opened.map_err(StartError::transient)?;
        let network = self.networks.find(&config.alloc_id);
        let outside = Outside { stdout_path, stderr_path, network };
        let task = config::task(&task_id, &config, hclspec::encode(&block), outside);
        let request = proto::StartTaskRequest { task: Some(task) };
        let caller = &instance.running.caller;
        let answer = caller.call(proto::SERVICE, "StartTask", request, START_TIMEOUT).await;
        let started = answer.map_err(failed_start).and_then(accepted);
        let (handle, network) = match started {
            Ok(started) => started,
            Err(error) => {
                self.outputs.close(&directory).await;
                return Err(error);
            }
        };
        let record = TaskRecord { outputs: directory, ..record }.with_handle(&handle);
        let task = PluginTask::new(Arc::clone(&self.hosted), instance, record.clone());
        Ok(Started { task: Arc::new(task), state: record.to_value(), network })
    }

    async fn destroy_task(&self, state: &Value, force: bool) -> Result<(), DriverError> {
        let record = TaskRecord::read(state)?;
        let request = proto::DestroyTaskRequest { task_id: record.task_id.clone(), force };
        let caller = self.hosted.caller(START_PATIENCE).await.map_err(DriverError::failed)?;
        let destroyed: Result<Empty, CallError> = quick(&caller, "DestroyTask", request).await;
        match destroyed {
            Ok(_) | Err(CallError::NotFound(_)) => {
                self.outputs.close(&record.outputs).await;
                Ok(())
            }
            Err(error) => {
                if force {
                    self.outputs.close(&record.outputs).await;
                }
                Err(DriverError::failed(error))
            }
        }
    }

    async fn make_network(&self, alloc_id: &str, hostname: Option<&str>) -> Result<PathBuf, DriverError> {
        let request = proto::CreateNetworkRequest {
            alloc_id: alloc_id.to_string(),
            hostname: hostname.unwrap_or_default().to_string(),
        };
        let caller = self.hosted.caller(START_PATIENCE).await.map_err(DriverError::failed)?;
        let made: proto::CreateNetworkResponse = caller
            .call(proto::SERVICE, "CreateNetwork", request, NETWORK_TIMEOUT)
            .await
            .map_err(DriverError::failed)?;
        let spec = made.isolation_spec.filter(|spec| spec.path.starts_with('/'));
        let spec = spec.ok_or_else(|| DriverError::failed("the plugin named no network namespace"))?;
        self.networks.put(alloc_id, &spec).map_err(DriverError::failed)?;
        Ok(PathBuf::from(spec.path))
    }

    async fn remove_network(&self, alloc_id: &str) -> Result<(), DriverError> {
        let Some(spec) = self.networks.find(alloc_id) else { return Ok(()) };
        let request =
            proto::DestroyNetworkRequest { alloc_id: alloc_id.to_string(), isolation_spec: Some(spec) };
        let caller = self.hosted.caller(START_PATIENCE).await.map_err(DriverError::failed)?;
        let removed: Result<Empty, CallError> =
            caller.call(proto::SERVICE, "DestroyNetwork", request, NETWORK_TIMEOUT).await;
        match removed {
            Ok(_) | Err(CallError::NotFound(_)) => {
                self.networks.remove(alloc_id);
                Ok(())
            }
            Err(error) => Err(DriverError::failed(error)),
        }
    }

    /// Ends tasks of which an earlier agent has not stored that they were started.
    async fn end_forgotten(&self, known: &Known) {
        for (directory, record) in self.outputs.forgotten(&self.key, known) {
            tracing::warn!(driver = self.name, task = record.task_id, "ending a task that no handle names");
            if let Err(error) = self.destroy_task(&record.to_value(), true).await {
                tracing::warn!(driver = self.name, %error, "a task that no handle names was not ended");
            }
            self.outputs.close(&directory).await;
        }
    }
}

/// A call that the driver can answer at once.
pub(super) async fn quick<Q, A>(caller: &Caller, method: &str, request: Q) -> Result<A, CallError>
where
    Q: prost::Message + 'static,
    A: prost::Message + Default + 'static,
{
    caller.call(proto::SERVICE, method, request, ANSWER_TIMEOUT).await
}

fn failed_start(error: CallError) -> StartError {
    match error {
        CallError::Failed { message, recoverable } => StartError::Failed { message, recoverable },
        CallError::Gone(_) => StartError::transient(error),
        other => StartError::fatal(other),
    }
}

/// What the driver has made of a request that it has answered.
fn accepted(
    answer: proto::StartTaskResponse,
) -> Result<(proto::TaskHandle, Option<DriverNetwork>), StartError> {
    let message = match answer.driver_error_msg.as_str() {
        "" => "the driver did not say why".to_string(),
        message => message.to_string(),
    };
    match proto::StartResult::try_from(answer.result) {
        Ok(proto::StartResult::Success) => {
            let handle = answer.handle.ok_or_else(|| StartError::fatal("the driver returned no handle"))?;
            Ok((handle, answer.network_override.map(network)))
        }
        Ok(proto::StartResult::Retry) => Err(StartError::transient(message)),
        Ok(proto::StartResult::Fatal) | Err(_) => Err(StartError::fatal(message)),
    }
}

fn network(given: proto::NetworkOverride) -> DriverNetwork {
    let ports = given.port_map.into_iter().map(|(label, port)| (label, i64::from(port)));
    DriverNetwork { ip: given.addr, port_map: ports.collect(), auto_advertise: given.auto_advertise }
}

impl Driver for PluginDriver {
    fn name(&self) -> &str {
        &self.name
    }

    fn handle_key(&self) -> &str {
        &self.key
    }

    fn capabilities(&self) -> Capabilities {
        let can = &self.capabilities;
        let fs_isolation = match can.fs_isolation() {
            PluginIsolation::Chroot => FsIsolation::Chroot,
            PluginIsolation::Image => FsIsolation::Image,
            // What is unveiled are the host's own paths.
            PluginIsolation::None | PluginIsolation::Unveil => FsIsolation::None,
        };
        Capabilities {
            signals: can.send_signals,
            exec: can.exec,
            fs_isolation,
            mounts: can.mount_configs == 0,
            // They are passed on; what a plugin makes of them is its own business.
            device_permissions: true,
        }
    }

    fn group_networks(&self) -> GroupNetworks {
        let joins = self.capabilities.network_isolation_modes().any(|mode| mode == NetworkMode::Group);
        match (self.capabilities.must_create_network, joins) {
            (true, _) => GroupNetworks::Makes,
            (false, true) => GroupNetworks::Joins,
            (false, false) => GroupNetworks::No,
        }
    }

    fn create_network<'a>(
        &'a self,
        alloc_id: &'a str,
        hostname: Option<&'a str>,
    ) -> BoxFuture<'a, Result<PathBuf, DriverError>> {
        Box::pin(self.make_network(alloc_id, hostname))
    }

    fn destroy_network<'a>(&'a self, alloc_id: &'a str) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(self.remove_network(alloc_id))
    }

    /// The plugin's own, which is no list of fields.
    fn task_schema(&self) -> Option<Schema> {
        None
    }

    fn fingerprint(&self) -> BoxStream<'static, Fingerprint> {
        let next = |(mut current, is_first): (watch::Receiver<Option<Fingerprint>>, bool)| async move {
            if is_first {
                let first = current.wait_for(Option::is_some);
                let first = tokio::time::timeout(FIRST_FINGERPRINT, first).await.map(|found| found.is_ok());
                let found = current.borrow_and_update().clone();
                let silent = || unhealthy(None, "the plugin has not reported yet");
                return first.unwrap_or(true).then(|| (found.unwrap_or_else(silent), (current, false)));
            }
            current.changed().await.ok()?;
            let found = current.borrow_and_update().clone()?;
            Some((found, (current, false)))
        };
        stream::unfold((self.fingerprint.clone(), true), next).boxed()
    }

    fn start(&self, config: TaskConfig) -> BoxFuture<'_, Result<Started, StartError>> {
        Box::pin(self.start_task(config))
    }

    fn recover<'a>(&'a self, state: &'a Value) -> BoxFuture<'a, Result<Arc<dyn RunningTask>, DriverError>> {
        Box::pin(async move {
            let record = TaskRecord::read(state)?;
            self.outputs.resume(&record.outputs).await;
            let task = recover(Arc::clone(&self.hosted), record).await?;
            Ok(Arc::new(task) as Arc<dyn RunningTask>)
        })
    }

    fn destroy<'a>(&'a self, state: &'a Value, force: bool) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(self.destroy_task(state, force))
    }

    fn end_unknown<'a>(&'a self, known: &'a Known) -> BoxFuture<'a, ()> {
        Box::pin(self.end_forgotten(known))
    }

    fn events(&self) -> BoxStream<'static, DriverEvent> {
        events(Arc::clone(&self.hosted))
    }
}

/// Follows the health of a driver, and says so while it cannot.
async fn follow(hosted: Arc<Hosted>, name: String, current: watch::Sender<Option<Fingerprint>>) {
    let current = Arc::new(current);
    let again = |caller| report(caller, name.clone(), Arc::clone(&current)).boxed();
    hosted.repeat(RETRY, again).await;
}

/// Passes fingerprints on until they end; true if there were any.
async fn report(caller: Caller, name: String, current: Arc<watch::Sender<Option<Fingerprint>>>) -> bool {
    let mut reported = false;
    let following = async {
        let mut stream = caller.stream(proto::SERVICE, "Fingerprint", Empty {}).await?;
        while let Some(found) = stream.message().await? {
            reported = true;
            let next = Some(fingerprint(&name, found));
            current.send_if_modified(|known| {
                let is_new = *known != next;
                *known = next;
                is_new
            });
        }
        Ok::<(), CallError>(())
    };
    let why = match following.await {
        Ok(()) => "the plugin reports no more".to_string(),
        Err(error) => error.to_string(),
    };
    let last = current.borrow().clone();
    current.send_replace(Some(unhealthy(last, &format!("failed to fingerprint driver: {why}"))));
    reported
}

/// What is known of a driver stays while nobody says otherwise; only its health does not.
fn unhealthy(last: Option<Fingerprint>, description: &str) -> Fingerprint {
    let attributes = last.map(|last| last.attributes).unwrap_or_default();
    Fingerprint { health: Health::Unhealthy, description: description.to_string(), attributes }
}

fn fingerprint(name: &str, found: proto::FingerprintResponse) -> Fingerprint {
    let health = match found.health() {
        _ if !found.err.is_empty() => Health::Unhealthy,
        proto::HealthState::Undetected => Health::Undetected,
        proto::HealthState::Unhealthy => Health::Unhealthy,
        proto::HealthState::Healthy => Health::Healthy,
    };
    let description = if found.err.is_empty() { found.health_description.clone() } else { found.err.clone() };
    let mut attributes: BTreeMap<String, String> =
        found.attributes.iter().map(|(key, value)| (key.clone(), value.shown())).collect();
    // An empty value means that the attribute does not exist.
    attributes.retain(|_, value| !value.is_empty());
    if health != Health::Undetected {
        attributes.entry(format!("driver.{name}")).or_insert_with(|| "1".to_string());
    }
    Fingerprint { health, description, attributes }
}

/// Messages about tasks, across the lives of a plugin.
fn events(hosted: Arc<Hosted>) -> BoxStream<'static, DriverEvent> {
    type State = (Arc<Hosted>, Option<tonic::Streaming<proto::TaskEvent>>);
    let next = |(hosted, mut open): State| async move {
        loop {
            if let Some(stream) = &mut open {
                if let Ok(Some(event)) = stream.message().await {
                    let event = DriverEvent {
                        alloc_id: event.alloc_id,
                        task: event.task_name,
                        message: event.message,
                    };
                    return Some((event, (hosted, open)));
                }
                // One that ends and does not go on is asked again, but not at once.
                open = None;
                tokio::time::sleep(RETRY.0).await;
            }
            let caller = hosted.caller(Duration::MAX).await.ok()?;
            match caller.stream(proto::SERVICE, "TaskEvents", Empty {}).await {
                Ok(stream) => open = Some(stream),
                Err(CallError::Unimplemented(_)) => std::future::pending().await,
                Err(_) => tokio::time::sleep(RETRY.0).await,
            }
        }
    };
    stream::unfold((hosted, None), next).boxed()
}

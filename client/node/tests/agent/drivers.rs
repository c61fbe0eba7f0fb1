//! Drivers behind their trait: what the agent does with one that it does not know, and with its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use executor::Exit;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use nix::sys::signal::Signal;
use node::driver::registry::{BuiltinDriver, DriverHost};
use node::driver::{
    Capabilities, Driver, DriverError, DriverEvent, Exec, ExecConfig, ExecError, Field, Fingerprint,
    FsIsolation, Health, Outcome, RunningTask, Schema, StartError, Started, TaskConfig, TaskStatus, Usage,
    ValueType, Values, exec::run_once,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::support::*;

const TOY: BuiltinDriver = BuiltinDriver {
    name: "toy",
    plugin_schema: Schema(&[&[Field::required("greeting", ValueType::Text)]]),
    dev_config: &[],
    legacy_options: &[],
    make: |config, _: &DriverHost| Some(Toy::make(config)),
};

const TASK: Schema = Schema(&[&[Field::optional("colour", ValueType::Text)]]);

/// Greets once when a task starts, and is unhealthy from then on. Its tasks run until they are stopped.
#[derive(Debug)]
struct Toy {
    greeting: String,
    healthy: watch::Sender<bool>,
    events: mpsc::UnboundedSender<DriverEvent>,
    waiting: Mutex<Option<mpsc::UnboundedReceiver<DriverEvent>>>,
}

impl Toy {
    fn make(config: &Values) -> Arc<dyn Driver> {
        let (events, waiting) = mpsc::unbounded_channel();
        Arc::new(Toy {
            greeting: config.text("greeting").unwrap().to_string(),
            healthy: watch::Sender::new(true),
            events,
            waiting: Mutex::new(Some(waiting)),
        })
    }
}

impl Driver for Toy {
    fn name(&self) -> &str {
        "toy"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            signals: false,
            exec: false,
            fs_isolation: FsIsolation::None,
            mounts: false,
            device_permissions: false,
        }
    }

    fn task_schema(&self) -> Option<Schema> {
        Some(TASK)
    }

    fn fingerprint(&self) -> BoxStream<'static, Fingerprint> {
        let next = |(mut healthy, first): (watch::Receiver<bool>, bool)| async move {
            if !first {
                healthy.changed().await.ok()?;
            }
            let health = if *healthy.borrow_and_update() { Health::Healthy } else { Health::Unhealthy };
            let attributes = BTreeMap::from([("driver.toy".to_string(), format!("{health:?}"))]);
            Some((Fingerprint { health, description: "as it likes".into(), attributes }, (healthy, false)))
        };
        stream::unfold((self.healthy.subscribe(), true), next).boxed()
    }

    fn start(&self, config: TaskConfig) -> BoxFuture<'_, Result<Started, StartError>> {
        let (alloc_id, task) = (config.alloc_id, config.task);
        self.events.send(DriverEvent { alloc_id, task, message: self.greeting.clone() }).unwrap();
        self.healthy.send_replace(false);
        let task = Arc::new(ToyTask(watch::Sender::new(false)));
        Box::pin(async move { Ok(Started { task, state: json!({"any": 1}), network: None }) })
    }

    fn recover<'a>(&'a self, _: &'a Value) -> BoxFuture<'a, Result<Arc<dyn RunningTask>, DriverError>> {
        Box::pin(async { Err(DriverError::failed("toys do not survive")) })
    }

    fn destroy<'a>(&'a self, state: &'a Value, _: bool) -> BoxFuture<'a, Result<(), DriverError>> {
        assert_eq!(state, &json!({"any": 1}));
        Box::pin(async { Ok(()) })
    }

    fn events(&self) -> BoxStream<'static, DriverEvent> {
        let waiting = self.waiting.lock().unwrap().take().expect("events are read once");
        stream::unfold(waiting, |mut waiting| async move { Some((waiting.recv().await?, waiting)) }).boxed()
    }
}

#[derive(Debug)]
struct ToyTask(watch::Sender<bool>);

impl RunningTask for ToyTask {
    fn wait(&self) -> BoxFuture<'_, Outcome> {
        Box::pin(async {
            self.0.subscribe().wait_for(|stopped| *stopped).await.ok();
            Outcome::Exited(Exit::default())
        })
    }

    fn stop(&self, _: Option<Signal>, _: Duration) -> BoxFuture<'_, Result<(), DriverError>> {
        self.0.send_replace(true);
        Box::pin(async { Ok(()) })
    }

    fn signal(&self, _: Signal) -> BoxFuture<'_, Result<(), DriverError>> {
        unreachable!("the driver says that it has no signals")
    }

    fn inspect(&self) -> BoxFuture<'_, TaskStatus> {
        Box::pin(async { TaskStatus { outcome: None, attributes: BTreeMap::new() } })
    }

    fn stats(&self, interval: Duration) -> BoxStream<'static, Usage> {
        node::driver::sampled(interval, || Some(Usage::default()))
    }

    fn exec(&self, _: ExecConfig) -> BoxFuture<'_, Result<Exec, ExecError>> {
        unreachable!("the driver says that it has no commands")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_driver_needs_nothing_of_the_agent_but_its_entry() {
    let (base, servers) = (Base::new(), FakeServers::new());
    let mut settings = settings(base.path());
    settings.drivers.push(&TOY);
    settings.plugins.insert("toy".into(), BTreeMap::from([("greeting".to_string(), json!("hello"))]));
    // Registered again at once when the node has changed.
    settings.dev = true;
    let task = json!({"Name": "t", "Driver": "toy", "Config": {"colour": "red"}});
    servers.assign(alloc(1, "service", json!([task])));
    let wrong = json!({"Name": "t", "Driver": "toy", "Config": {"color": "red"}});
    servers.assign(alloc(2, "service", json!([wrong])));
    let agent = start(settings, &servers).await;
    let seen = servers.await_task(&alloc_id(1), "t", |task| kinds(task).contains(&"Driver"));
    let event = seen.events.iter().find(|event| event.kind == "Driver").unwrap();
    assert_eq!((event.driver_message.as_str(), event.display_message.as_str()), ("hello", "hello"));
    let failed = servers.await_status(&alloc_id(2), "failed");
    let events = &failed.task_states["t"].events;
    assert!(events.iter().any(|event| event.display_message == "driver toy has no config key \"color\""));
    let node = eventually("a registration as unhealthy", || {
        let registered = servers.cluster.lock().unwrap().registered.last().cloned()?;
        (!registered.drivers["toy"].healthy).then_some(registered)
    });
    assert!(node.drivers["toy"].detected && node.drivers["mock_driver"].healthy);
    assert_eq!(node.attributes["driver.toy"], "Unhealthy");

    let handle = agent.local().allocs.get(&alloc_id(1)).unwrap();
    let ask = |reply| node::alloc::handle::AllocCommand::Signal {
        task: None,
        signal: Signal::SIGHUP,
        name: "SIGHUP".into(),
        reply,
    };
    servers.await_task(&alloc_id(1), "t", |task| task.state == "running");
    assert_eq!(handle.ask(ask).await.unwrap_err(), "driver toy does not support sending signals");
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_block_that_does_not_fit_stops_the_agent() {
    let base = tempfile::tempdir().unwrap();
    let mut settings = settings(base.path());
    settings.drivers.push(&TOY);
    let error = node::Agent::start(settings, |_| FakeServers::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "plugin \"toy\": config key \"greeting\" is required");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_process_can_be_inspected_measured_and_given_a_command() {
    let (base, servers) = (Base::new(), FakeServers::new());
    servers.assign(alloc(1, "service", json!([shell("t", "exec tail -f /dev/null")])));
    let agent = start(settings(base.path()), &servers).await;
    servers.await_status(&alloc_id(1), "running");
    let task = agent.local().allocs.get(&alloc_id(1)).unwrap().tasks.running("t").unwrap();
    let status = task.inspect().await;
    assert!(status.outcome.is_none() && status.attributes["pid"].parse::<i32>().is_ok());
    let usage = task.stats(Duration::from_secs(60)).next().await.unwrap();
    assert!(usage.processes >= 1 && usage.resident_bytes > 0);
    let command = ["/bin/sh", "-c", "echo out; echo err >&2; exit 3"].map(String::from).to_vec();
    let output = run_once(&*task, command, Duration::from_secs(20)).await.unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
    assert_eq!(output.exit.code, 3);
    let endless = ["/bin/sh", "-c", "sleep 1000"].map(String::from).to_vec();
    assert!(run_once(&*task, endless, Duration::from_millis(100)).await.is_err());
    servers.stop(&alloc_id(1));
    servers.await_status(&alloc_id(1), "complete");
    assert!(matches!(task.inspect().await.outcome, Some(Outcome::Exited(_))));
    agent.shutdown().await;
}

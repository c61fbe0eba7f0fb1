//! The calls of a driver.

use std::collections::BTreeMap;
use std::sync::Mutex;

use futures_util::stream::{self, StreamExt};
use plugin::proto::base::{ConfigSchema, Empty, PluginType, SetConfig};
use plugin::proto::driver::{self as proto, NetworkMode};
use plugin::proto::hclspec::Spec;
use plugin::proto::structs::Attribute;
use plugin::serve::{Answers, Requests, Service, info, many, one, unimplemented};
use tonic::Status;

use crate::tasks::{self, Tasks};

#[derive(Default)]
pub struct Hello {
    greeting: std::sync::Arc<Mutex<String>>,
    tasks: Tasks,
}

impl Service for Hello {
    fn answer(&self, call: &str, requests: Requests) -> Answers {
        let tasks = self.tasks.clone();
        match call.rsplit('/').next().unwrap_or_default() {
            "PluginInfo" => {
                one(requests, |_: Empty| async { Ok(info(PluginType::Driver, "hello", "1.0.0")) })
            }
            "ConfigSchema" => {
                let greeting = Spec::attr("greeting", "string", false).or("\"hello\"");
                let spec = Some(Spec::object([("greeting", greeting)]));
                one(requests, |_: Empty| async { Ok(ConfigSchema { spec }) })
            }
            "SetConfig" => {
                let greeting = std::sync::Arc::clone(&self.greeting);
                one(requests, move |request: SetConfig| async move {
                    let config: BTreeMap<String, String> = tasks::decode(&request.msgpack_config)?;
                    *greeting.lock().expect("nobody panics with it") = config["greeting"].clone();
                    eprintln!(
                        r#"{{"@level":"info","@message":"configured","greeting":"{}"}}"#,
                        config["greeting"]
                    );
                    Ok(Empty {})
                })
            }
            "TaskConfigSchema" => {
                let env = Spec::attr("labels", "list(map(string))", false);
                let command = Spec::attr("command", "string", true);
                let spec = Some(Spec::object([("command", command), ("labels", env)]));
                one(requests, |_: Empty| async { Ok(proto::TaskConfigSchema { spec }) })
            }
            "Capabilities" => one(requests, |_: Empty| async {
                let capabilities = proto::DriverCapabilities {
                    send_signals: true,
                    exec: true,
                    network_isolation_modes: vec![NetworkMode::Host.into(), NetworkMode::Group.into()],
                    mount_configs: 1,
                    ..Default::default()
                };
                Ok(proto::CapabilitiesResponse { capabilities: Some(capabilities) })
            }),
            "Fingerprint" => {
                let greeting = self.greeting.lock().expect("nobody panics with it").clone();
                let fingerprint = proto::FingerprintResponse {
                    attributes: BTreeMap::from([(
                        "driver.hello.greeting".into(),
                        Attribute::text(&greeting),
                    )]),
                    health: proto::HealthState::Healthy.into(),
                    health_description: "Healthy".into(),
                    err: String::new(),
                };
                // Once, and then nothing changes any more.
                many(requests, |_: Empty| stream::iter([fingerprint]).chain(stream::pending()))
            }
            "StartTask" => one(requests, |request: proto::StartTaskRequest| async move {
                tasks.start(request.task.unwrap_or_default())
            }),
            "RecoverTask" => one(requests, |request: proto::RecoverTaskRequest| async move {
                tasks.recover(request.handle.unwrap_or_default())
            }),
            "WaitTask" => {
                one(requests, |request: proto::TaskId| async move { tasks.wait(&request.task_id).await })
            }
            "StopTask" => {
                one(requests, |request: proto::StopTaskRequest| async move { tasks.stop(request).await })
            }
            "DestroyTask" => one(requests, |request: proto::DestroyTaskRequest| async move {
                tasks.destroy(&request.task_id, request.force).await
            }),
            "InspectTask" => {
                one(requests, |request: proto::TaskId| async move { tasks.inspect(&request.task_id) })
            }
            "TaskStats" => {
                many(requests, move |request: proto::TaskStatsRequest| tasks.stats(request.task_id))
            }
            "TaskEvents" => many(requests, move |_: Empty| tasks.events()),
            "SignalTask" => one(requests, |request: proto::SignalTaskRequest| async move {
                tasks.signal(&request.task_id, &request.signal)
            }),
            "ExecTaskStreaming" => tasks.exec(requests),
            other => unimplemented(other),
        }
    }
}

/// What plugins say when they do not know a task.
pub fn unknown_task() -> Status {
    Status::not_found("task not found for given id")
}

//! The calls of a device plugin: its devices stand in a file, one a line as `ID` or `ID sick`, which is looked at again and again.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::stream;
use plugin::proto::base::{ConfigSchema, Empty, PluginType, SetConfig};
use plugin::proto::device as proto;
use plugin::proto::hclspec::Spec;
use plugin::proto::structs::{Attribute, AttributeValue, Int64Value, StatValue};
use plugin::serve::{Answers, Requests, Service, info, many, one, unimplemented};
use tonic::Status;

const LOOK_EVERY: Duration = Duration::from_millis(50);

pub struct Devices {
    file: String,
}

impl Devices {
    pub fn new(file: String) -> Devices {
        Devices { file }
    }
}

impl Service for Devices {
    fn answer(&self, call: &str, requests: Requests) -> Answers {
        let file = self.file.clone();
        match call.rsplit('/').next().unwrap_or_default() {
            "PluginInfo" => {
                one(requests, |_: Empty| async { Ok(info(PluginType::Device, "hello-device", "1.0.0")) })
            }
            "ConfigSchema" => {
                let spec = Some(Spec::object([("unused", Spec::attr("unused", "string", false))]));
                one(requests, |_: Empty| async { Ok(ConfigSchema { spec }) })
            }
            "SetConfig" => one(requests, |_: SetConfig| async { Ok(Empty {}) }),
            "Fingerprint" => many(requests, |_: Empty| {
                stream::unfold((file, None), |(file, last)| async move {
                    loop {
                        let found = std::fs::read_to_string(&file).unwrap_or_default();
                        if last.as_ref() != Some(&found) {
                            return Some((fingerprint(&found), (file, Some(found))));
                        }
                        tokio::time::sleep(LOOK_EVERY).await;
                    }
                })
            }),
            "Reserve" => {
                one(requests, |request: proto::ReserveRequest| async move { reserve(request, &file) })
            }
            "Stats" => many(requests, |request: proto::StatsRequest| {
                let every = request.collection_interval.unwrap_or_default().to_std();
                stream::unfold((file, true), move |(file, is_first)| async move {
                    if !is_first {
                        tokio::time::sleep(every).await;
                    }
                    let found = std::fs::read_to_string(&file).unwrap_or_default();
                    Some((stats(&found), (file, false)))
                })
            }),
            other => unimplemented(other),
        }
    }
}

fn ids(found: &str) -> impl Iterator<Item = (String, bool)> {
    found.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_string(), words.next() != Some("sick")))
    })
}

fn fingerprint(found: &str) -> proto::Fingerprint {
    let device = |(id, healthy): (String, bool)| proto::DetectedDevice {
        id,
        healthy,
        health_description: if healthy { String::new() } else { "it is sick".to_string() },
        locality: None,
    };
    let memory = Attribute { value: Some(AttributeValue::Int(8)), unit: "GiB".to_string() };
    let devices: Vec<_> = ids(found).map(device).collect();
    let group = proto::DeviceGroup {
        vendor: "acme".into(),
        kind: "greeter".into(),
        name: "g1".into(),
        attributes: BTreeMap::from([("memory".to_string(), memory)]),
        devices,
    };
    proto::Fingerprint { groups: if group.devices.is_empty() { Vec::new() } else { vec![group] } }
}

fn reserve(request: proto::ReserveRequest, file: &str) -> Result<proto::ReserveResponse, Status> {
    let known: Vec<String> =
        ids(&std::fs::read_to_string(file).unwrap_or_default()).map(|(id, _)| id).collect();
    if let Some(id) = request.device_ids.iter().find(|id| !known.contains(id)) {
        return Err(Status::not_found(format!("no device {id}")));
    }
    let envs = BTreeMap::from([("ACME_VISIBLE_DEVICES".to_string(), request.device_ids.join(","))]);
    let (task_path, host_path) = ("/etc/acme".to_string(), file.to_string());
    let mounts = vec![proto::Mount { task_path, host_path, read_only: true }];
    let null = "/dev/null".to_string();
    let device =
        proto::DeviceSpec { task_path: "/dev/acme0".into(), host_path: null, permissions: "rw".into() };
    let reservation = proto::Reservation { envs, mounts, devices: vec![device] };
    Ok(proto::ReserveResponse { reservation: Some(reservation) })
}

fn stats(found: &str) -> proto::Stats {
    let summary = StatValue {
        int_numerator: Some(Int64Value { value: 3 }),
        unit: "greetings".into(),
        desc: "how often it has greeted".into(),
        ..Default::default()
    };
    let one = proto::DeviceStats { summary: Some(summary), stats: None, timestamp: None };
    let instances = ids(found).map(|(id, _)| (id, one.clone())).collect();
    let (vendor, kind, name) = ("acme".into(), "greeter".into(), "g1".into());
    proto::Stats { groups: vec![proto::GroupStats { vendor, kind, name, instances }] }
}

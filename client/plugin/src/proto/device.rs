//! `hashicorp.nomad.plugins.device`.

use std::collections::BTreeMap;

use super::structs::{Attribute, Span, StatObject, StatValue, Timestamp};

pub const SERVICE: &str = "hashicorp.nomad.plugins.device.DevicePlugin";

/// All devices that there are.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Fingerprint {
    #[prost(message, repeated, tag = "1")]
    pub groups: Vec<DeviceGroup>,
}

/// Devices that are alike.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeviceGroup {
    #[prost(string, tag = "1")]
    pub vendor: String,
    #[prost(string, tag = "2")]
    pub kind: String,
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(message, repeated, tag = "4")]
    pub devices: Vec<DetectedDevice>,
    #[prost(btree_map = "string, message", tag = "5")]
    pub attributes: BTreeMap<String, Attribute>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DetectedDevice {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(bool, tag = "2")]
    pub healthy: bool,
    #[prost(string, tag = "3")]
    pub health_description: String,
    #[prost(message, optional, tag = "4")]
    pub locality: Option<Locality>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Locality {
    #[prost(string, tag = "1")]
    pub pci_bus_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ReserveRequest {
    #[prost(string, repeated, tag = "1")]
    pub device_ids: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ReserveResponse {
    #[prost(message, optional, tag = "1")]
    pub reservation: Option<Reservation>,
}

/// What a task needs to use the devices.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Reservation {
    #[prost(btree_map = "string, string", tag = "1")]
    pub envs: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "2")]
    pub mounts: Vec<Mount>,
    #[prost(message, repeated, tag = "3")]
    pub devices: Vec<DeviceSpec>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Mount {
    #[prost(string, tag = "1")]
    pub task_path: String,
    #[prost(string, tag = "2")]
    pub host_path: String,
    #[prost(bool, tag = "3")]
    pub read_only: bool,
}

/// A device file; permissions are some of `rwm`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeviceSpec {
    #[prost(string, tag = "1")]
    pub task_path: String,
    #[prost(string, tag = "2")]
    pub host_path: String,
    #[prost(string, tag = "3")]
    pub permissions: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StatsRequest {
    #[prost(message, optional, tag = "1")]
    pub collection_interval: Option<Span>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Stats {
    #[prost(message, repeated, tag = "1")]
    pub groups: Vec<GroupStats>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct GroupStats {
    #[prost(string, tag = "1")]
    pub vendor: String,
    #[prost(string, tag = "2")]
    pub kind: String,
    #[prost(string, tag = "3")]
    pub name: String,
    /// By the ids of the devices.
    #[prost(btree_map = "string, message", tag = "4")]
    pub instances: BTreeMap<String, DeviceStats>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DeviceStats {
    /// The most telling number.
    #[prost(message, optional, tag = "1")]
    pub summary: Option<StatValue>,
    #[prost(message, optional, tag = "2")]
    pub stats: Option<StatObject>,
    #[prost(message, optional, tag = "3")]
    pub timestamp: Option<Timestamp>,
}

//! `hashicorp.nomad.plugins.base.proto`: what every plugin answers.

use super::hclspec::Spec;

pub const SERVICE: &str = "hashicorp.nomad.plugins.base.proto.BasePlugin";

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum PluginType {
    Unknown = 0,
    Driver = 2,
    Device = 3,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Empty {}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PluginInfo {
    #[prost(enumeration = "PluginType", tag = "1")]
    pub kind: i32,
    #[prost(string, repeated, tag = "2")]
    pub api_versions: Vec<String>,
    #[prost(string, tag = "3")]
    pub version: String,
    #[prost(string, tag = "4")]
    pub name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ConfigSchema {
    #[prost(message, optional, tag = "1")]
    pub spec: Option<Spec>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SetConfig {
    #[prost(bytes = "vec", tag = "1")]
    pub msgpack_config: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    pub nomad_config: Option<NomadConfig>,
    #[prost(string, tag = "3")]
    pub plugin_api_version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct NomadConfig {
    #[prost(message, optional, tag = "1")]
    pub driver: Option<NomadDriverConfig>,
}

/// What a driver may know of its node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NomadDriverConfig {
    #[prost(uint32, tag = "1")]
    pub client_max_port: u32,
    #[prost(uint32, tag = "2")]
    pub client_min_port: u32,
    #[prost(message, optional, tag = "3")]
    pub topology: Option<Topology>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Topology {
    #[prost(uint32, repeated, tag = "1")]
    pub node_ids: Vec<u32>,
    #[prost(message, optional, tag = "2")]
    pub distances: Option<Distances>,
    #[prost(message, repeated, tag = "3")]
    pub cores: Vec<Core>,
    #[prost(uint64, tag = "4")]
    pub override_total_compute: u64,
    #[prost(uint64, tag = "5")]
    pub override_withhold_compute: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Distances {
    #[prost(uint32, tag = "1")]
    pub dimension: u32,
    #[prost(uint32, repeated, tag = "2")]
    pub values: Vec<u32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Core {
    #[prost(uint32, tag = "1")]
    pub socket_id: u32,
    #[prost(uint32, tag = "2")]
    pub node_id: u32,
    #[prost(uint32, tag = "3")]
    pub core_id: u32,
    /// 0 for a fast one, 1 for an economical one.
    #[prost(int32, tag = "4")]
    pub core_grade: i32,
    #[prost(bool, tag = "5")]
    pub disable: bool,
    #[prost(uint64, tag = "6")]
    pub base_speed: u64,
    #[prost(uint64, tag = "7")]
    pub max_speed: u64,
    #[prost(uint64, tag = "8")]
    pub guess_speed: u64,
}

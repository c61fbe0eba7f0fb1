//! Package `plugin`, what go-plugin itself answers beside the services of a plugin, and `grpc.health.v1`.

pub const CONTROLLER: &str = "plugin.GRPCController";
pub const STDIO: &str = "plugin.GRPCStdio";
pub const HEALTH: &str = "grpc.health.v1.Health";

/// What a plugin calls the health of all it answers.
pub const HEALTH_NAME: &str = "plugin";

/// A piece of what a plugin has written; channel 1 is standard output, 2 standard error.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StdioData {
    #[prost(int32, tag = "1")]
    pub channel: i32,
    #[prost(bytes = "vec", tag = "2")]
    pub data: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct HealthRequest {
    #[prost(string, tag = "1")]
    pub service: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct HealthResponse {
    /// 1 for a plugin that serves.
    #[prost(int32, tag = "1")]
    pub status: i32,
}

pub const SERVING: i32 = 1;

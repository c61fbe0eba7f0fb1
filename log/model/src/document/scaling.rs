use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shape::{Map, is_zero};

/// `ScalingPolicy` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ScalingPolicy {
    pub min: Option<i64>,
    pub max: Option<i64>,
    pub policy: Map<String, Value>,
    pub enabled: Option<bool>,
    #[serde(rename = "Type")]
    pub kind: String,
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub namespace: String,
    pub target: Map<String, String>,
    pub create_index: u64,
    pub modify_index: u64,
}

/// `ScalingEvent` of Nomad's API: a line of a group's scaling history.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ScalingEvent {
    pub count: Option<i64>,
    pub previous_count: i64,
    pub error: bool,
    pub message: String,
    pub meta: Map<String, Value>,
    #[serde(rename = "EvalID")]
    pub eval_id: Option<String>,
    /// Unix nanoseconds.
    pub time: u64,
    pub create_index: u64,
}

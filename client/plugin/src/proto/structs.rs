//! `hashicorp.nomad.plugins.shared.structs`, and what of `google.protobuf` the messages use.

use std::collections::BTreeMap;

/// A value with a unit.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Attribute {
    #[prost(oneof = "AttributeValue", tags = "1, 2, 3, 4")]
    pub value: Option<AttributeValue>,
    #[prost(string, tag = "5")]
    pub unit: String,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum AttributeValue {
    #[prost(double, tag = "1")]
    Float(f64),
    #[prost(int64, tag = "2")]
    Int(i64),
    #[prost(string, tag = "3")]
    Text(String),
    #[prost(bool, tag = "4")]
    Bool(bool),
}

impl Attribute {
    pub fn text(text: &str) -> Attribute {
        Attribute { value: Some(AttributeValue::Text(text.to_string())), unit: String::new() }
    }

    /// As attributes of a node are written: `8 GiB`, `true`.
    pub fn shown(&self) -> String {
        let value = match &self.value {
            None => return String::new(),
            Some(AttributeValue::Float(number)) => number.to_string(),
            Some(AttributeValue::Int(number)) => number.to_string(),
            Some(AttributeValue::Text(text)) => text.clone(),
            Some(AttributeValue::Bool(flag)) => flag.to_string(),
        };
        if self.unit.is_empty() { value } else { format!("{value} {}", self.unit) }
    }
}

/// A detail of an error: the call may be made again.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RecoverableError {
    #[prost(bool, tag = "1")]
    pub recoverable: bool,
}

/// `google.rpc.Status`, in which gRPC sends the details of an error.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Status {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Span {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl From<std::time::Duration> for Span {
    fn from(span: std::time::Duration) -> Span {
        Span { seconds: span.as_secs() as i64, nanos: span.subsec_nanos() as i32 }
    }
}

impl Span {
    /// Zero for one that is negative.
    pub fn to_std(self) -> std::time::Duration {
        let seconds = u64::try_from(self.seconds).unwrap_or_default();
        std::time::Duration::new(seconds, u32::try_from(self.nanos).unwrap_or_default().min(999_999_999))
    }
}

/// `google.protobuf.Timestamp`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Timestamp {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl Timestamp {
    /// Unix nanoseconds.
    pub fn unix_nanos(self) -> i64 {
        self.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(self.nanos))
    }
}

/// `google.protobuf.DoubleValue`, `Int64Value`, `StringValue` and `BoolValue`: values that may be missing.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct DoubleValue {
    #[prost(double, tag = "1")]
    pub value: f64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Int64Value {
    #[prost(int64, tag = "1")]
    pub value: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StringValue {
    #[prost(string, tag = "1")]
    pub value: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct BoolValue {
    #[prost(bool, tag = "1")]
    pub value: bool,
}

/// Statistics of a device, nested as it likes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StatObject {
    #[prost(btree_map = "string, message", tag = "1")]
    pub nested: BTreeMap<String, StatObject>,
    #[prost(btree_map = "string, message", tag = "2")]
    pub attributes: BTreeMap<String, StatValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StatValue {
    #[prost(message, optional, tag = "1")]
    pub float_numerator: Option<DoubleValue>,
    #[prost(message, optional, tag = "2")]
    pub float_denominator: Option<DoubleValue>,
    #[prost(message, optional, tag = "3")]
    pub int_numerator: Option<Int64Value>,
    #[prost(message, optional, tag = "4")]
    pub int_denominator: Option<Int64Value>,
    #[prost(message, optional, tag = "5")]
    pub string: Option<StringValue>,
    #[prost(message, optional, tag = "6")]
    pub bool: Option<BoolValue>,
    #[prost(string, tag = "7")]
    pub unit: String,
    #[prost(string, tag = "8")]
    pub desc: String,
}

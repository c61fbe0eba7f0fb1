//! A policy, parsed.

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use crate::capability::{Member, Set};
use crate::{
    Capability, HostVolumeCapability, Level, OperatorCapability, PoolCapability, VariableCapability,
};

/// What a policy says. As JSON it has the form that clients of Nomad know as `RulesJSON`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Policy {
    pub namespaces: Vec<NamespaceRule>,
    pub node_pools: Vec<NamedRule<PoolCapability>>,
    pub host_volumes: Vec<NamedRule<HostVolumeCapability>>,
    pub agent: Option<CoarseRule>,
    pub node: Option<CoarseRule>,
    pub operator: Option<OperatorRule>,
    pub quota: Option<CoarseRule>,
    pub plugin: Option<CoarseRule>,
}

/// One word about a whole scope.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CoarseRule {
    #[serde(serialize_with = "word")]
    pub policy: Level,
}

/// The namespaces that a glob names.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct NamespaceRule {
    pub name: String,
    #[serde(serialize_with = "optional_word")]
    pub policy: Option<Level>,
    /// What the coarse word stands for is among them.
    #[serde(serialize_with = "words")]
    pub capabilities: Set<Capability>,
    pub variables: Option<Variables>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Variables {
    pub paths: Vec<PathRule>,
}

/// The variables that a glob names.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct PathRule {
    pub path_spec: String,
    #[serde(serialize_with = "words")]
    pub capabilities: Set<VariableCapability>,
}

/// The pools, or the volumes of nodes, that a glob names.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase", bound = "C: Member")]
pub struct NamedRule<C: Member> {
    pub name: String,
    #[serde(serialize_with = "optional_word")]
    pub policy: Option<Level>,
    #[serde(serialize_with = "words")]
    pub capabilities: Set<C>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct OperatorRule {
    #[serde(serialize_with = "optional_word")]
    pub policy: Option<Level>,
    #[serde(serialize_with = "words")]
    pub capabilities: Set<OperatorCapability>,
}

impl Policy {
    /// It says nothing at all.
    pub fn is_empty(&self) -> bool {
        *self == Policy::default()
    }
}

fn word<S: Serializer>(level: &Level, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(level.word())
}

fn optional_word<S: Serializer>(level: &Option<Level>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(level.map_or("", Level::word))
}

fn words<C: Member, S: Serializer>(set: &Set<C>, to: S) -> Result<S::Ok, S::Error> {
    let mut list = to.serialize_seq(None)?;
    set.iter().try_for_each(|member| list.serialize_element(member.word()))?;
    list.end()
}

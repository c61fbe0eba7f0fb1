use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Index, Uuid};
use model::document::{ACLBindingRule, ACLPolicy, ACLRole, AuthMethodRecord, Namespace, NodePool};
use model::{AllocId, VolumeKey};
use serde::{Deserialize, Serialize};

use super::columns::Fault;
use crate::acl::{self, Acl, AuthMethods, BindingRules, OneTimeToken, Policies, Roles, Token};
use crate::cursor::{Cursor, Cursors};
use crate::erasure::{self, Erasure};
use crate::keyring::{self, Keyring};
use crate::names::Named;
use crate::namespace::Namespaces;
use crate::operator::Operator;
use crate::pool::Pools;
use crate::sink::{Sink, Sinks};
use crate::volume::{Claimed, Claims, Expansion, Expansions};
use crate::{DroppedHistory, Recording, State};

/// There is little of it, and its shape grows: a document instead of columns.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Settings {
    pub operator: Operator,
    pools: BTreeMap<String, Named<NodePool>>,
    pools_changed: Index,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    namespaces: BTreeMap<String, Named<Namespace>>,
    #[serde(default, skip_serializing_if = "never")]
    namespaces_changed: Index,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keyring: Option<keyring::Content>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    acl: Option<AclSettings>,
    #[serde(default, skip_serializing_if = "never")]
    pub volumes_changed: Index,
    #[serde(default, skip_serializing_if = "never")]
    pub variables_changed: Index,
    #[serde(default, skip_serializing_if = "never")]
    pub services_changed: Index,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    claims: Vec<(VolumeKey, AllocId, Claimed)>,
    #[serde(default, skip_serializing_if = "never")]
    claims_changed: Index,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    expansions: Vec<(VolumeKey, Expansion)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cursors: Vec<(String, Cursor)>,
    #[serde(default, skip_serializing_if = "never")]
    cursors_changed: Index,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sinks: Vec<(String, Sink)>,
    #[serde(default, skip_serializing_if = "never")]
    sinks_changed: Index,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    erasure: Option<erasure::Content>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recording>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raised: Option<u16>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped_history: BTreeMap<String, DroppedHistory>,
}

#[derive(Default, Serialize, Deserialize)]
struct AclSettings {
    policies: BTreeMap<String, Named<ACLPolicy>>,
    policies_changed: Index,
    roles: BTreeMap<String, Named<ACLRole>>,
    roles_changed: Index,
    tokens: BTreeMap<Uuid, Token>,
    one_time: BTreeMap<Uuid, OneTimeToken>,
    bootstrapped: Index,
    tokens_changed: Index,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    methods: BTreeMap<String, Named<AuthMethodRecord>>,
    #[serde(default, skip_serializing_if = "never")]
    methods_changed: Index,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    rules: BTreeMap<String, Named<ACLBindingRule>>,
    #[serde(default, skip_serializing_if = "never")]
    rules_changed: Index,
}

impl AclSettings {
    fn of(acl: &Acl) -> AclSettings {
        AclSettings {
            policies: acl.policies.all().clone(),
            policies_changed: acl.policies.changed,
            roles: acl.roles.all().clone(),
            roles_changed: acl.roles.changed,
            tokens: acl.tokens().map(|(accessor, token)| (accessor, token.clone())).collect(),
            one_time: acl.one_time().clone(),
            bootstrapped: acl.bootstrapped(),
            tokens_changed: acl.tokens_changed(),
            methods: acl.methods.all().clone(),
            methods_changed: acl.methods.changed,
            rules: acl.rules.all().clone(),
            rules_changed: acl.rules.changed,
        }
    }
}

fn never(changed: &Index) -> bool {
    *changed == Index::ZERO
}

impl Settings {
    pub fn pools(&mut self) -> Pools {
        Pools::new(std::mem::take(&mut self.pools), self.pools_changed)
    }

    pub fn namespaces(&mut self) -> Namespaces {
        Namespaces::new(std::mem::take(&mut self.namespaces), self.namespaces_changed)
    }

    pub fn acl(&mut self) -> Acl {
        let Some(stored) = self.acl.take() else { return Acl::default() };
        let tokens = acl::Content {
            tokens: stored.tokens.into_iter().map(|(accessor, token)| (accessor, Arc::new(token))).collect(),
            one_time: stored.one_time,
            bootstrapped: stored.bootstrapped,
            changed: stored.tokens_changed,
            ..acl::Content::default()
        };
        let policies = Policies::new(stored.policies, stored.policies_changed);
        let mut acl = Acl::new(policies, Roles::new(stored.roles, stored.roles_changed), tokens);
        acl.methods = AuthMethods::new(stored.methods, stored.methods_changed);
        acl.rules = BindingRules::new(stored.rules, stored.rules_changed);
        acl
    }

    pub fn claims(&mut self) -> Claims {
        Claims::of(std::mem::take(&mut self.claims), self.claims_changed)
    }

    pub fn expansions(&mut self) -> Expansions {
        Expansions::of(std::mem::take(&mut self.expansions))
    }

    pub fn cursors(&mut self) -> Cursors {
        Cursors::of(std::mem::take(&mut self.cursors), self.cursors_changed)
    }

    pub fn sinks(&mut self) -> Sinks {
        Sinks::of(std::mem::take(&mut self.sinks), self.sinks_changed)
    }

    pub fn erasure(&mut self) -> Erasure {
        self.erasure.take().map(Erasure::from).unwrap_or_default()
    }

    pub fn keyring(&mut self) -> Keyring {
        self.keyring.take().map(Keyring::from).unwrap_or_default()
    }
}

pub(super) fn encode(state: &State) -> Vec<u8> {
    let settings = Settings {
        operator: state.operator.clone(),
        pools: state.pools.all().clone(),
        pools_changed: state.pools.changed,
        namespaces: state.namespaces.all().clone(),
        namespaces_changed: state.namespaces.changed,
        volumes_changed: state.volumes.changed,
        variables_changed: state.variables.changed(),
        services_changed: state.services.changed(),
        claims: state.claims.rows(),
        claims_changed: state.claims.changed(),
        expansions: state.expansions.rows(),
        cursors: state.cursors.rows(),
        cursors_changed: state.cursors.changed(),
        sinks: state.sinks.rows(),
        sinks_changed: state.sinks.changed(),
        erasure: (state.erasure.changed() != Index::ZERO).then(|| state.erasure.content().clone()),
        recording: state.recording.as_deref().cloned(),
        raised: state.raised,
        dropped_history: state.dropped_history.clone(),
        acl: (state.acl != Acl::default()).then(|| AclSettings::of(&state.acl)),
        keyring: (state.keyring != Keyring::default()).then(|| state.keyring.content().clone()),
    };
    rmp_serde::to_vec_named(&settings).expect("settings hold only what msgpack can write")
}

pub(super) fn decode(bytes: &[u8]) -> Result<Settings, Fault> {
    let mut rest = bytes;
    let settings = rmp_serde::from_read(&mut rest).map_err(|_| "it is not a document of settings")?;
    if rest.is_empty() { Ok(settings) } else { Err("there is more after its document") }
}

//! The object of an event, as commands name it.

use model::{Event, Subject};

use crate::line::ids;

/// `job/default/web`, `node/ID`, `var/default/db/password`; several allocations or evaluations are counted after the third.
pub(crate) fn label(event: &Event) -> String {
    match event.subject() {
        Subject::Node(id) => format!("node/{id}"),
        Subject::Job(key) => format!("job/{key}"),
        Subject::Evals(evals) => format!("eval/{}", ids(evals)),
        Subject::Allocs(allocs) => format!("alloc/{}", ids(allocs)),
        Subject::Deployment(id) => format!("deployment/{id}"),
        Subject::Cluster => of_cluster(event),
    }
}

fn of_cluster(event: &Event) -> String {
    match event {
        Event::NodePoolUpserted(e) => format!("node-pool/{}", e.name),
        Event::NodePoolDeleted(e) => format!("node-pool/{}", e.name),
        Event::NamespaceUpserted(e) => format!("namespace/{}", e.name),
        Event::NamespaceDeleted(e) => format!("namespace/{}", e.name),
        Event::VolumeRegistered(e) => format!("volume/{}/{}", e.volume.namespace, e.volume.id),
        Event::VolumeDeregistered(e) => format!("volume/{}/{}", e.volume.namespace, e.volume.id),
        Event::CsiExpansionAwaited(e) => format!("volume/{}/{}", e.volume.namespace, e.volume.id),
        Event::CsiExpansionEnded(e) => format!("volume/{}/{}", e.volume.namespace, e.volume.id),
        Event::AclPolicyUpserted(e) => format!("acl-policy/{}", e.name),
        Event::AclPolicyDeleted(e) => format!("acl-policy/{}", e.name),
        Event::AclRoleUpserted(e) => format!("acl-role/{}", e.role),
        Event::AclRoleDeleted(e) => format!("acl-role/{}", e.role),
        Event::AclTokenCreated(e) => format!("acl-token/{}", e.accessor),
        Event::AclTokenUpdated(e) => format!("acl-token/{}", e.accessor),
        Event::AclTokenIssuedByLogin(e) => format!("acl-token/{}", e.accessor),
        Event::AclTokensDeleted(e) => format!("acl-token/{}", ids(&e.accessors)),
        Event::OneTimeTokenCreated(e) => format!("acl-token/{}", e.accessor),
        Event::OneTimeTokenExchanged(e) => format!("acl-token/{}", e.accessor),
        Event::OneTimeTokensExpired(e) => format!("acl-token/{}", ids(&e.accessors)),
        Event::AclAuthMethodUpserted(e) => format!("acl-auth-method/{}", e.name),
        Event::AclAuthMethodDeleted(e) => format!("acl-auth-method/{}", e.name),
        Event::AclBindingRuleUpserted(e) => format!("acl-binding-rule/{}", e.rule),
        Event::AclBindingRuleDeleted(e) => format!("acl-binding-rule/{}", e.rule),
        Event::VariableSet(e) => format!("var/{}/{}", e.key.namespace, e.key.path),
        Event::VariableForgotten(e) => format!("var/{}/{}", e.key.namespace, e.key.path),
        Event::SecretsForgotten(e) => e.of.path.clone(),
        Event::KeyTreeRequested(e) => format!("server/{}", e.server),
        Event::KeyTreeFounded(e) => format!("key-tree/{}", e.tree),
        Event::KeyTreeShared(e) => format!("server/{}", e.sealed.server),
        Event::ForgottenErased(e) => format!("server/{}", e.server),
        Event::KeyTreeHolderRemoved(e) => format!("server/{}", e.server),
        Event::VariableDeleted(e) => format!("var/{}/{}", e.key.namespace, e.key.path),
        Event::VariableLockAcquired(e) => format!("var/{}/{}", e.key.namespace, e.key.path),
        Event::VariableLockReleased(e) => format!("var/{}/{}", e.key.namespace, e.key.path),
        Event::RootKeyActivated(e) => format!("root-key/{}", e.key),
        Event::RootKeySealed(e) => format!("root-key/{}", e.key),
        Event::RootKeyRemoved(e) => format!("root-key/{}", e.key),
        Event::RootKeysRekeying(e) => format!("root-key/{}", ids(&e.keys)),
        Event::RootKeysRekeyed(e) => format!("root-key/{}", ids(&e.keys)),
        Event::ServerKeyAnnounced(e) => format!("server/{}", e.server),
        Event::EventCursorSet(e) => format!("event-cursor/{}", e.name),
        Event::EventCursorAcked(e) => format!("event-cursor/{}", e.name),
        Event::EventCursorReset(e) => format!("event-cursor/{}", e.name),
        Event::EventCursorDeleted(e) => format!("event-cursor/{}", e.name),
        Event::EventCursorMemberAcked(e) => format!("event-cursor/{}", e.name),
        Event::EventCursorSplit(e) => format!("event-cursor/{}", e.name),
        Event::EventSinkSet(e) => format!("event-sink/{}", e.name),
        Event::EventSinkDeleted(e) => format!("event-sink/{}", e.name),
        Event::EventSinkPaused(e) => format!("event-sink/{}", e.name),
        Event::EventSinkParked(e) => format!("event-sink/{}", e.name),
        Event::EventSinkResumed(e) => format!("event-sink/{}", e.name),
        Event::Observed(_) | Event::ObservationGap(_) => "recording".to_string(),
        Event::SchedulerConfigured(_) => "scheduler".to_string(),
        Event::AutopilotConfigured(_) => "autopilot".to_string(),
        Event::EpochRaised(_) => "epoch".to_string(),
        Event::HistoryDropped(e) => format!("server/{}", e.server),
        _ => "cluster".to_string(),
    }
}

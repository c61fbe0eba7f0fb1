//! What one reader of the stream may see, for as long as it reads.

use std::time::{Duration, Instant};

use acl::{Capability as C, VariableCapability};
use api::TopicFilter;
use base::Index;
use feed::{Entry, Viewer};
use model::NodeId;
use parking_lot::Mutex;

use crate::access::{Access, ReadJob, Right, SeeVariables, denied};
use crate::app_state::AppState;
use crate::error::Failure;

/// Who reads on is looked at again after a change of any token, policy or role, and this often: tokens expire, and tasks
/// end, without anybody's doing.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// A reader with the rights of its token, as they are while it reads.
pub(super) struct TokenReader {
    server: AppState,
    topics: Vec<TopicFilter>,
    namespace: String,
    seen: Mutex<Seen>,
}

struct Seen {
    access: Access,
    as_of: Index,
    at: Instant,
}

impl TokenReader {
    /// # Errors
    /// 403 if one of the topics is not for this caller: a stream that left it out would look as if nothing happened.
    pub(super) fn admitted(
        server: AppState,
        access: &Access,
        topics: Vec<TopicFilter>,
        namespace: &str,
    ) -> Result<TokenReader, Failure> {
        check(access, &topics, namespace)?;
        let as_of = server.control.state().acl.changed();
        let seen = Mutex::new(Seen { access: access.clone(), as_of, at: Instant::now() });
        Ok(TokenReader { server, topics, namespace: namespace.to_string(), seen })
    }
}

impl Viewer for TokenReader {
    fn may_see(&self, entry: &Entry) -> bool {
        let acl = self.seen.lock().access.acl.clone();
        acl.is_management()
            || match entry.topic {
                "Node" => acl.reads_nodes() && !hides_node(&self.server, &acl, &entry.key),
                "Variable" => acl.allows_variable(&entry.namespace, &entry.key, VariableCapability::List),
                topic => opens(&acl, topic, &entry.namespace),
            }
    }

    fn may_go_on(&self) -> bool {
        if !self.server.agent.access.enabled {
            return true;
        }
        let mut seen = self.seen.lock();
        let as_of = self.server.control.state().acl.changed();
        if as_of == seen.as_of && seen.at.elapsed() < LOOK_AGAIN {
            return true;
        }
        let access = self.server.access_now(seen.access.presented.text());
        let access = access.and_then(|access| check(&access, &self.topics, &self.namespace).map(|()| access));
        match access {
            Ok(access) => {
                *seen = Seen { access, as_of, at: Instant::now() };
                true
            }
            Err(_) => false,
        }
    }
}

pub(super) fn check(access: &Access, topics: &[TopicFilter], namespace: &str) -> Result<(), Failure> {
    // Everything, which is also what no topic means, is for who may see everything.
    let all = topics.is_empty() && !access.acl.is_management();
    let is_closed = |wanted: &TopicFilter| !opens(&access.acl, &wanted.topic, namespace);
    if all || topics.iter().any(is_closed) { Err(denied()) } else { Ok(()) }
}

/// In all namespaces (`*`): in at least one, and each event is looked at.
fn opens(acl: &acl::Acl, topic: &str, namespace: &str) -> bool {
    match topic {
        "Job" | "Evaluation" | "Allocation" | "Deployment" | "Service" => ReadJob::holds(acl, namespace),
        // They are in no namespace, and name allocations of any.
        "CSIPlugin" => acl.reads_plugins(),
        "HostVolume" => acl.allows(namespace, C::HostVolumeRead),
        "CSIVolume" => acl.allows(namespace, C::CsiReadVolume),
        "Node" => acl.reads_nodes(),
        "Variable" => SeeVariables::holds(acl, namespace),
        "Operator" => acl.reads_operator(),
        _ => acl.is_management(),
    }
}

/// A node that is gone is in no pool any more.
pub(super) fn hides_node(server: &AppState, acl: &acl::Acl, id: &str) -> bool {
    let state = server.control.state();
    let row = id.parse().ok().and_then(|id: NodeId| state.nodes.find(id));
    row.is_some_and(|row| acl.hides_pool(&state.nodes.cold(row).document.node_pool))
}

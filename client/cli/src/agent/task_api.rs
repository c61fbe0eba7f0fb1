//! Answers tasks on the sockets that the node makes for them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Weak};

use ::node::{LocalNode, TaskApi};
use agent_http::NodeAgent;
use futures_util::future::BoxFuture;
use listener::{Peer, Timeouts, serve_stream};
use tokio::net::UnixStream;
use tokio::sync::watch;

/// Weak: the agent holds the node, which holds this.
struct Served(Weak<NodeAgent>);

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Served")
    }
}

/// Lets tasks of the node call the agent, from the first one on.
pub(super) fn offer(node: &LocalNode, agent: &Arc<NodeAgent>) {
    let api: Arc<dyn TaskApi> = Arc::new(Served(Arc::downgrade(agent)));
    node.context.task_api.set(api).expect("the agent is started once");
}

impl TaskApi for Served {
    fn serve(&self, stream: UnixStream) -> BoxFuture<'static, ()> {
        let agent = self.0.upgrade();
        Box::pin(async move {
            // The agent stops.
            let Some(agent) = agent else { return };
            let (_open, stopping) = watch::channel(false);
            let here = Peer::Caller(IpAddr::V4(Ipv4Addr::LOCALHOST));
            serve_stream(stream, here, agent_http::task_router(agent), Timeouts::default(), stopping).await;
        })
    }
}

//! The way to other servers. There is none in this release: a server with peers in its log cannot reach them.

use std::future::Future;

use openraft::BasicNode;
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};

use crate::config::{Types, Vote};

pub(crate) struct NoPeers;

/// The way to one of them.
pub(crate) struct NoWay {
    target: u64,
    address: String,
}

impl NoWay {
    fn unreachable(&self) -> Unreachable<Types> {
        Unreachable::from_string(format!("no way to server {} at {}", self.target, self.address))
    }
}

impl RaftNetworkFactory<Types> for NoPeers {
    type Network = NoWay;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> NoWay {
        NoWay { target, address: node.addr.clone() }
    }
}

impl RaftNetworkV2<Types> for NoWay {
    type SnapshotData = ();

    async fn append_entries(
        &mut self,
        _: AppendEntriesRequest<Types>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RPCError<Types>> {
        Err(self.unreachable().into())
    }

    async fn vote(
        &mut self,
        _: VoteRequest<Types>,
        _: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        Err(self.unreachable().into())
    }

    // Without this, the library takes a missing answer for a yes.
    async fn pre_vote(
        &mut self,
        _: VoteRequest<Types>,
        _: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        Err(self.unreachable().into())
    }

    async fn full_snapshot(
        &mut self,
        _: Vote,
        _: openraft::alias::SnapshotOf<Types, ()>,
        _: impl Future<Output = ReplicationClosed> + openraft::OptionalSend + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        Err(self.unreachable().into())
    }
}

use wire::RemoteError;
use wire::messages::{Empty, QueryOptions};

use super::Rpc;

pub(super) async fn ping(_: Empty) -> Result<Empty, RemoteError> {
    Ok(Empty {})
}

/// The leader's address; empty while there is none.
pub(super) async fn leader(rpc: &Rpc, _: QueryOptions) -> Result<String, RemoteError> {
    Ok(rpc.leader_address())
}

pub(super) async fn peers(rpc: &Rpc, _: QueryOptions) -> Result<Vec<String>, RemoteError> {
    Ok(rpc.addresses())
}

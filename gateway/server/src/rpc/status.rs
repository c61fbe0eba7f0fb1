use wire::messages::{Empty, QueryOptions};

use super::Rpc;

pub async fn ping(_: Empty) -> Result<Empty, String> {
    Ok(Empty {})
}

/// The leader's address; empty while there is none.
pub async fn leader(rpc: &Rpc, _: QueryOptions) -> Result<String, String> {
    Ok(rpc.leader_address())
}

pub async fn peers(rpc: &Rpc, _: QueryOptions) -> Result<Vec<String>, String> {
    Ok(rpc.addresses())
}

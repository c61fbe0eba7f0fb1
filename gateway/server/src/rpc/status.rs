use wire::messages::{Empty, QueryOptions};

use super::Rpc;

pub async fn ping(_: Empty) -> Result<Empty, String> {
    Ok(Empty {})
}

/// The leader's address; empty while there is none.
pub async fn leader(rpc: &Rpc, _: QueryOptions) -> Result<String, String> {
    Ok(if rpc.control.leads() { rpc.advertise.to_string() } else { String::new() })
}

pub async fn peers(rpc: &Rpc, _: QueryOptions) -> Result<Vec<String>, String> {
    Ok(vec![rpc.advertise.to_string()])
}

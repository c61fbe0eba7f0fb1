mod keys;
mod network;
mod pool;
mod sockets;

use std::net::SocketAddr;

use base::Uuid;

use super::{Key, Member, Parting};

/// The server `n` as it starts.
fn member(n: u8, serf: SocketAddr) -> Member {
    Member {
        id: Uuid::from(u128::from(n)),
        generation: 1_000,
        number: u64::from(n) * 10,
        name: format!("s{n}"),
        region: "global".to_string(),
        datacenter: "dc1".to_string(),
        serf,
        rpc: format!("10.0.0.{n}:4647"),
        http: format!("10.0.0.{n}:4646"),
        version: "0.1.0".to_string(),
        bootstrap_expect: 3,
        has_log: false,
        parting: Parting::Staying,
    }
}

fn key(text: &str) -> Option<Key> {
    Some(Key::parse(text).unwrap())
}

const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";
const OTHER_KEY: &str = "//////////////////////////////////////////8=";

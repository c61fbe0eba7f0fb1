use std::collections::BTreeMap;

use base::Index;
use serde::{Deserialize, Serialize};

use super::columns::Fault;
use crate::State;
use crate::operator::Operator;
use crate::pool::{Pool, Pools};

/// There is little of it, and its shape grows: a document instead of columns.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Settings {
    pub operator: Operator,
    pools: BTreeMap<String, Pool>,
    pools_changed: Index,
}

impl Settings {
    pub fn pools(&mut self) -> Pools {
        Pools::new(std::mem::take(&mut self.pools), self.pools_changed)
    }
}

pub(super) fn encode(state: &State) -> Vec<u8> {
    let (pools, pools_changed) = (state.pools.all().clone(), state.pools.changed);
    let settings = Settings { operator: state.operator.clone(), pools, pools_changed };
    rmp_serde::to_vec_named(&settings).expect("settings hold only what msgpack can write")
}

pub(super) fn decode(bytes: &[u8]) -> Result<Settings, Fault> {
    let mut rest = bytes;
    let settings = rmp_serde::from_read(&mut rest).map_err(|_| "it is not a document of settings")?;
    if rest.is_empty() { Ok(settings) } else { Err("there is more after its document") }
}

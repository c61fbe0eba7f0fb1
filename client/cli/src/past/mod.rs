//! What commands about the past have in common: objects at a moment, and how two moments differ.

pub(crate) mod allocations;
pub(crate) mod difference;
pub(crate) mod gaps;
pub(crate) mod object;
pub(crate) mod origin;
pub(crate) mod undo;

pub(crate) use object::Object;

use base::Index;
use sdk::Client;

use crate::call::{Call, Doing, Failure};

/// A moment of the cluster: a client that reads it, and its index.
pub(crate) struct Moment {
    pub client: Client,
    pub index: Index,
}

impl Moment {
    /// Finds the index that `text` means (`now`, or what `-as-of` takes), so that everything that is read is of that one.
    ///
    /// # Errors
    /// The agent cannot be reached, or there is no such moment.
    pub(crate) async fn find(call: &Call, text: &str) -> Result<Moment, Failure> {
        // A moment, so that the answer is of the whole state and not of one table.
        let asked = if text == "now" { "-0s" } else { text };
        let index = call.client_at("", asked)?.moment().await.doing(&format!("finding the moment {text}"))?;
        Moment::at(call, index)
    }

    /// # Errors
    /// When the address cannot be used.
    pub(crate) fn at(call: &Call, index: Index) -> Result<Moment, Failure> {
        Ok(Moment { client: call.client_at(call.namespace(), &index.to_string())?, index })
    }
}

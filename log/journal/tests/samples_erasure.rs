//! Samples of events about the key tree, and about what was forgotten or dropped.

use base::{Index, Time, Uuid};
use model::event::*;
use model::*;

use crate::samples::id;

pub fn samples(name: &str) -> Vec<Event> {
    let empty = || SealedKey { server: Uuid::NIL, bytes: vec![] };
    let sealed = || SealedKey { server: id(5), bytes: vec![1, 2, 3] };
    match name {
        "HistoryDropped" => vec![
            HistoryDropped { server: String::new(), oldest: Index::ZERO, time: Time::ZERO }.into(),
            HistoryDropped { server: "one.global".into(), oldest: Index(1 << 40), time: Time(-1) }.into(),
        ],
        "KeyTreeRequested" => vec![
            KeyTreeRequested { server: Uuid::NIL, public: [0; 32] }.into(),
            KeyTreeRequested { server: id(5), public: [0xfe; 32] }.into(),
        ],
        "KeyTreeFounded" => vec![
            KeyTreeFounded { tree: Uuid::NIL, sealed: vec![] }.into(),
            KeyTreeFounded { tree: id(8), sealed: vec![sealed(), empty()] }.into(),
        ],
        "KeyTreeShared" => vec![
            KeyTreeShared { tree: Uuid::NIL, sealed: empty() }.into(),
            KeyTreeShared { tree: id(8), sealed: sealed() }.into(),
        ],
        "VariableForgotten" => vec![
            VariableForgotten { key: VariableKey::default() }.into(),
            VariableForgotten { key: VariableKey::new("default", "nomad/jobs/ünïcode") }.into(),
        ],
        "SecretsForgotten" => vec![
            SecretsForgotten { of: VariableKey::default() }.into(),
            SecretsForgotten { of: auth_method_secrets("ünïcode") }.into(),
        ],
        "ForgottenErased" => vec![
            ForgottenErased { server: Uuid::NIL, up_to: Index::ZERO }.into(),
            ForgottenErased { server: id(5), up_to: Index(1 << 40) }.into(),
        ],
        "KeyTreeHolderRemoved" => vec![
            KeyTreeHolderRemoved { server: Uuid::NIL }.into(),
            KeyTreeHolderRemoved { server: id(5) }.into(),
        ],
        other => crate::samples_recording::samples(other),
    }
}

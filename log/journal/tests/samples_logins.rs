//! As `samples`, for how one logs in.

use base::Uuid;
use model::event::*;
use model::*;

use crate::samples::id;

pub fn samples(name: &str) -> Vec<Event> {
    let doc = || Doc(vec![0x81, 0xa2, b'I', b'D', 0xa1, b'x']);
    match name {
        "AclAuthMethodUpserted" => vec![
            AclAuthMethodUpserted { name: String::new(), document: Doc::default() }.into(),
            AclAuthMethodUpserted { name: "corp".into(), document: doc() }.into(),
        ],
        "AclAuthMethodDeleted" => vec![
            AclAuthMethodDeleted { name: String::new() }.into(),
            AclAuthMethodDeleted { name: "corp".into() }.into(),
        ],
        "AclBindingRuleUpserted" => vec![
            AclBindingRuleUpserted { rule: Uuid::NIL, document: Doc::default() }.into(),
            AclBindingRuleUpserted { rule: id(6), document: doc() }.into(),
        ],
        "AclBindingRuleDeleted" => vec![
            AclBindingRuleDeleted { rule: Uuid::NIL }.into(),
            AclBindingRuleDeleted { rule: id(6) }.into(),
        ],
        "AclTokenIssuedByLogin" => vec![
            AclTokenIssuedByLogin {
                accessor: Uuid::NIL,
                document: Doc::default(),
                secret: TokenSecret { digest: [0; 32], sealed: SealedData { key: Uuid::NIL, bytes: vec![] } },
                method: String::new(),
                rules: vec![],
            }
            .into(),
            AclTokenIssuedByLogin {
                accessor: id(4),
                document: doc(),
                secret: TokenSecret {
                    digest: [0xfe; 32],
                    sealed: SealedData { key: id(8), bytes: vec![1, 2, 3] },
                },
                method: "corp".into(),
                rules: vec![id(6), id(7)],
            }
            .into(),
        ],
        other => crate::samples_services::samples(other),
    }
}

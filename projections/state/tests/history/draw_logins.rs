//! What happens to auth methods and binding rules, and tokens that are issued by login.

use base::{Rng, Uuid};
use model::document::{ACLAuthMethod, ACLBindingRule, ACLToken, AuthMethodRecord};
use model::event::*;
use model::{Doc, SealedData, TokenSecret};
use state::State;

use super::draw::one;

pub fn of_logins(state: &State, rng: &mut Rng) -> Option<Vec<Event>> {
    let acl = &state.acl;
    let methods = acl.methods.names();
    let rules: Vec<Uuid> = acl.rules.names().iter().map(|id| id.parse().expect("ids are UUIDs")).collect();
    let event = match rng.below(5) {
        0 => {
            let name = format!("method-{}", rng.below(3));
            let sealed = SealedData { key: rng.uuid(), bytes: vec![3; 5] };
            let record = AuthMethodRecord {
                method: ACLAuthMethod {
                    name: name.clone(),
                    kind: "JWT".to_string(),
                    ..ACLAuthMethod::default()
                },
                client_secret: (rng.below(2) == 0).then_some(sealed),
                private_key: None,
            };
            AclAuthMethodUpserted { name, document: Doc::of(&record) }.into()
        }
        1 => {
            let rule = Uuid::from(u128::from(rng.below(4) + 1));
            let document = ACLBindingRule {
                id: rule.to_string(),
                selector: rng.below(9).to_string(),
                ..ACLBindingRule::default()
            };
            AclBindingRuleUpserted { rule, document: Doc::of(&document) }.into()
        }
        2 => AclAuthMethodDeleted { name: one(&methods, rng)?.to_string() }.into(),
        3 => AclBindingRuleDeleted { rule: one(&rules, rng)? }.into(),
        _ => {
            let mut digest = [1; 32];
            digest[..8].copy_from_slice(&rng.below(u64::MAX).to_le_bytes());
            let secret = TokenSecret { digest, sealed: SealedData { key: Uuid::NIL, bytes: vec![4] } };
            let document = ACLToken { kind: "client".to_string(), ..ACLToken::default() };
            AclTokenIssuedByLogin {
                accessor: rng.uuid(),
                document: Doc::of(&document),
                secret,
                method: one(&methods, rng)?.to_string(),
                rules: vec![one(&rules, rng)?],
            }
            .into()
        }
    };
    Some(vec![event])
}

//! Rights for what is no route: calls of the node RPC.

use std::net::IpAddr;

use base::{Index, Uuid};
use control::Receipt;
use model::document::{ACLPolicy, ACLRole, ACLToken};
use model::{Caller, Command, RequestId};

use crate::access::{ReadAgent, denied, own_policies};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{Write, random};
use crate::storage::Storage;

/// Answers who somebody is and what they may do, as the routes have it.
#[derive(Clone)]
pub struct Gate(pub(crate) AppState);

impl Gate {
    /// Storage plugins, for whoever is no caller.
    pub fn storage(&self) -> Storage {
        Storage(self.0.clone())
    }

    /// The oldest index of which this server has the state; zero when it has no history. Of what was before the first batch
    /// nobody asks.
    pub fn oldest(&self) -> Index {
        self.0.history.oldest().map_or(Index::ZERO, |oldest| oldest.max(Index(1)))
    }

    /// # Errors
    /// 403 unless who presents this may look at agents.
    pub async fn reads_agent(&self, presented: &str) -> Result<(), Failure> {
        self.0.access(presented).await?.require::<ReadAgent>("default")
    }

    /// Has a command done in the name of who presents this.
    ///
    /// # Errors
    /// 403, or the command's.
    pub async fn submit(
        &self,
        presented: &str,
        address: Option<IpAddr>,
        command: Command,
    ) -> Result<Receipt, Failure> {
        let access = self.0.access(presented).await?;
        let request = RequestId(Uuid::from_random(random()));
        let (params, caller) = (api::Params::default(), Caller { address, ..access.caller() });
        let write = Write { params, request, said: RequestId::default(), caller, access };
        self.0.submit(&write, command).await
    }

    /// The token that is presented, without its secret; `None` if it is none, or access control is off.
    ///
    /// # Errors
    /// 403 for one that is worth nothing any more.
    pub async fn token(&self, presented: &str) -> Result<Option<ACLToken>, Failure> {
        let access = self.0.access(presented).await?;
        Ok(access.accessor().and_then(|accessor| state::acl::token(&self.0.control.state().acl, accessor)))
    }

    /// The policies of these names that there are, for who has them; without names all that it has.
    ///
    /// # Errors
    /// 403 if one of them is not the caller's, who does not manage.
    pub async fn policies(
        &self,
        presented: &str,
        names: Option<&[String]>,
    ) -> Result<Vec<ACLPolicy>, Failure> {
        let access = self.0.access(presented).await?;
        let state = self.0.control.state();
        let own = own_policies(&state, &access);
        let named = names.unwrap_or(&own);
        let is_own = |name: &String| own.contains(name) || state.acl.policies.get(name).is_none();
        if !access.acl.is_management() && !named.iter().all(is_own) {
            return Err(denied());
        }
        Ok(named.iter().filter_map(|name| state::acl::policy(&state.acl, name)).collect())
    }

    /// The roles with these ids that there are, for who has them.
    ///
    /// # Errors
    /// 403 if one of them is not the caller's, who does not manage.
    pub async fn roles(&self, presented: &str, ids: &[String]) -> Result<Vec<ACLRole>, Failure> {
        let access = self.0.access(presented).await?;
        let state = self.0.control.state();
        let token = access.accessor().and_then(|accessor| state.acl.token(accessor));
        let is_own = |id: &String| {
            token.is_some_and(|token| token.document.roles.iter().any(|link| link.id == *id))
                || state.acl.roles.get(id).is_none()
        };
        if !access.acl.is_management() && !ids.iter().all(is_own) {
            return Err(denied());
        }
        let role = |id: &String| state::acl::role(&state.acl, id.parse().ok()?);
        Ok(ids.iter().filter_map(role).collect())
    }
}

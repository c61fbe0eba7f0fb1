//! Rights for what is no route: calls of the node RPC.

use std::net::IpAddr;

use base::Uuid;
use control::Receipt;
use model::{Command, RequestId};

use crate::access::{ReadAgent, Who};
use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::{Write, random};

/// Answers who somebody is and what they may do, as the routes have it.
#[derive(Clone)]
pub struct Gate(pub(crate) AppState);

/// An access token, as far as everybody may know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenName {
    pub accessor: Uuid,
    pub name: String,
    pub is_management: bool,
}

impl Gate {
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
        let (params, caller) = (api::Params::default(), access.caller(address));
        let write = Write { params, request, said: RequestId::default(), caller, access };
        self.0.submit(&write, command).await
    }

    /// The token that is presented; `None` if it is none, or access control is off.
    ///
    /// # Errors
    /// 403 for one that is worth nothing any more.
    pub async fn token(&self, presented: &str) -> Result<Option<TokenName>, Failure> {
        let access = self.0.access(presented).await?;
        Ok(match access.who {
            Who::Token { accessor, name } => {
                Some(TokenName { accessor, name, is_management: access.acl.is_management() })
            }
            _ => None,
        })
    }
}

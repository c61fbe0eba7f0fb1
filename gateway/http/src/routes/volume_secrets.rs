//! Secrets that come with a volume: they are kept as a variable, which the log has sealed only, and nowhere else.

use std::collections::BTreeMap;

use ::acl::VariableCapability;
use model::command::SetVariable;
use model::document::CSIVolume;
use model::{Actor, Command, Request, VariableKey};

use crate::app_state::AppState;
use crate::error::Failure;
use crate::request::Write;
use crate::storage::{Storage, secrets_key};

/// Of names of requests; see [`Write::beside`].
const SECRETS: u8 = 0xff;

/// What a request has for plugins, and where that is to be kept.
pub(super) struct Given {
    key: VariableKey,
    pub secrets: BTreeMap<String, String>,
}

/// Takes the secrets out of what becomes a fact.
///
/// # Errors
/// 403: there are some, and the caller may not write the variable. Also if they are those that are kept: an answer must not say
/// whether somebody has guessed them.
pub(super) fn take(write: &Write, volume: &mut CSIVolume) -> Result<Given, Failure> {
    let secrets = std::mem::take(&mut volume.secrets.0.0);
    let given = Given { key: secrets_key(&volume.namespace, &volume.id), secrets };
    let VariableKey { namespace, path } = &given.key;
    let may_write = write.access.acl.allows_variable(namespace, path, VariableCapability::Write);
    if !given.secrets.is_empty() && !may_write {
        return Err(Failure::forbidden(format!(
            "Permission denied: Secrets are kept as the variable {path}, which takes the right to write that"
        )));
    }
    Ok(given)
}

impl Given {
    fn is_kept(&self, server: &AppState, volume: &CSIVolume) -> bool {
        let stored = || Storage(server.clone()).secrets(&volume.namespace, &volume.id);
        self.secrets.is_empty() || stored().is_ok_and(|stored| stored == self.secrets)
    }

    /// Has the log keep them. Without any, those that are kept stay.
    ///
    /// # Errors
    /// They are too large, cannot be sealed yet, or another holds the lock of the variable.
    pub(super) async fn keep(
        self,
        server: &AppState,
        write: &Write,
        volume: &CSIVolume,
    ) -> Result<(), Failure> {
        if self.is_kept(server, volume) {
            return Ok(());
        }
        let items = super::variables::sealed(server, &self.key, &self.secrets.into_iter().collect()).await?;
        let set = SetVariable { key: self.key, items, only_at: None, lock: None };
        let command = Command::SetVariable(Box::new(set));
        let name = write.beside(SECRETS).request;
        let request = Request {
            said: write.said,
            ..Request::named(name, Actor::Caller(write.caller.clone()), command)
        };
        server.control.submit(request).await?;
        Ok(())
    }
}

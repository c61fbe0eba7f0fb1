use api::{Variable, VariableErasure, VariableMetadata, VariableVersion};
use model::document::input;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;

use crate::Error;
use crate::client::{Answer, Client, Query};

/// What may stand in a variable's path unescaped.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// What became of a change.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableChange {
    Done(Variable),
    /// It is another one than the caller saw, or somebody else has its lock. This is the variable as it is, as far as the
    /// caller may read it; its modify index is zero if there is none.
    Conflict(Variable),
}

/// Variables, by their paths.
impl Client {
    /// `GET /v1/vars`: takes `prefix` and what pages take.
    pub async fn variables(&self, query: Query) -> Result<Answer<Vec<VariableMetadata>>, Error> {
        self.get("/v1/vars", query).await
    }

    /// `GET /v1/var/:path`.
    pub async fn variable(&self, path: &str) -> Result<Variable, Error> {
        Ok(self.get(&route(path), Query::new()).await?.value)
    }

    /// `GET /v1/var/:path?version=N`: what it held. Ours.
    pub async fn variable_version(&self, path: &str, version: u64) -> Result<Variable, Error> {
        Ok(self.get(&route(path), Query::new().with("version", version)).await?.value)
    }

    /// `GET /v1/var/:path?versions`: the newest first. Ours.
    pub async fn variable_versions(&self, path: &str) -> Result<Vec<VariableVersion>, Error> {
        Ok(self.get(&route(path), Query::new().flag("versions", true)).await?.value)
    }

    /// `PUT /v1/var/:path`. With `only_at` only if it was last modified at that index; zero: only if there is none.
    pub async fn set_variable(
        &self,
        variable: &Variable,
        only_at: Option<u64>,
    ) -> Result<VariableChange, Error> {
        let cas = only_at.map(|index| index.to_string()).unwrap_or_default();
        self.change_variable(variable, Query::new().with("cas", cas)).await
    }

    /// `PUT /v1/var/:path?lock-acquire`: its answer has the id of the lock.
    pub async fn acquire_variable_lock(&self, variable: &Variable) -> Result<VariableChange, Error> {
        self.change_variable(variable, Query::new().flag("lock-acquire", true)).await
    }

    /// `PUT /v1/var/:path?lock-release`.
    pub async fn release_variable_lock(&self, variable: &Variable) -> Result<VariableChange, Error> {
        self.change_variable(variable, Query::new().flag("lock-release", true)).await
    }

    /// `PUT /v1/var/:path?lock-renew`: it holds for its whole time again.
    pub async fn renew_variable_lock(&self, variable: &Variable) -> Result<VariableMetadata, Error> {
        Ok(self.put(&route(&variable.path), Query::new().flag("lock-renew", true), variable).await?.value)
    }

    /// `DELETE /v1/var/:path`; `only_at` as in [`Client::set_variable`]. A conflict is given back.
    pub async fn delete_variable(&self, path: &str, only_at: Option<u64>) -> Result<Option<Variable>, Error> {
        let cas = only_at.map(|index| index.to_string()).unwrap_or_default();
        let request = self.request(Method::DELETE, &route(path), Query::new().with("cas", cas));
        match self.changed(request, path).await? {
            (_, None) => Ok(None),
            (_, Some(conflict)) => Ok(Some(conflict)),
        }
    }

    /// `DELETE /v1/var/:path?forget`: deletes it, and has all servers erase what it ever held. Ours.
    pub async fn forget_variable(&self, path: &str) -> Result<VariableErasure, Error> {
        Ok(self.delete(&route(path), Query::new().flag("forget", true)).await?.value)
    }

    /// `GET /v1/var/:path?forgotten`: how far that is, the newest first. Ours.
    pub async fn variable_erasures(&self, path: &str) -> Result<Vec<VariableErasure>, Error> {
        Ok(self.get(&route(path), Query::new().flag("forgotten", true)).await?.value)
    }

    async fn change_variable(&self, variable: &Variable, query: Query) -> Result<VariableChange, Error> {
        let request = self.request(Method::PUT, &route(&variable.path), query).json(variable);
        let (text, conflict) = self.changed(request, &variable.path).await?;
        match conflict {
            Some(conflict) => Ok(VariableChange::Conflict(conflict)),
            None => Ok(VariableChange::Done(read(&text, &variable.path)?)),
        }
    }

    /// The answer; or what is there instead, for a conflict.
    async fn changed(
        &self,
        request: reqwest::RequestBuilder,
        path: &str,
    ) -> Result<(Vec<u8>, Option<Variable>), Error> {
        let response = request.send().await.map_err(|e| Error::unreachable(self.address(), &e))?;
        let is_conflict = response.status().as_u16() == 409;
        if !is_conflict {
            let response = self.checked(response).await?;
            let text = response.bytes().await.map_err(|e| Error::unreachable(self.address(), &e))?;
            return Ok((text.to_vec(), None));
        }
        let text = response.bytes().await.map_err(|e| Error::unreachable(self.address(), &e))?;
        match read(&text, path) {
            Ok(conflict) => Ok((Vec::new(), Some(conflict))),
            // Not every conflict is one with another variable.
            Err(_) => {
                let text = String::from_utf8_lossy(&text).trim_end().to_string();
                Err(Error::Status { code: 409, text })
            }
        }
    }
}

fn read(text: &[u8], path: &str) -> Result<Variable, Error> {
    input::from_slice(text).map_err(|source| Error::Answer { path: route(path), source })
}

fn route(path: &str) -> String {
    format!("/v1/var/{}", utf8_percent_encode(path, PATH))
}

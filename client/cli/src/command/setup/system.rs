//! Another system with an HTTP API below `/v1`, and the questions that are asked before it is changed.

use std::io::{self, BufRead, IsTerminal};

use anyhow::anyhow;
use sdk::{ApiRequest, Builder, Client, TlsOptions};
use serde_json::Value;

use crate::call::{Doing, Failure};
use crate::output::{json, write_out};

/// Consul or Vault.
pub(super) struct System {
    pub(super) name: &'static str,
    client: Client,
    headers: Vec<(String, String)>,
    yes: bool,
}

impl System {
    /// Nothing is sent yet. Headers without a value are left out.
    ///
    /// # Errors
    /// The address cannot be used.
    pub(super) fn new(
        name: &'static str,
        (address, basic_auth): (String, String),
        tls: TlsOptions,
        headers: [(&str, &str); 2],
        yes: bool,
    ) -> Result<System, Failure> {
        let builder = Builder { address, basic_auth, tls, ..Builder::default() };
        let client = builder.build().doing(&format!("connecting to {name}"))?;
        let headers = headers.into_iter().filter(|(_, value)| !value.is_empty());
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Ok(System { name, client, headers, yes })
    }

    /// What is at the path; `None` when there is nothing.
    ///
    /// # Errors
    /// It is not reached, or refuses.
    pub(super) async fn find(&self, path: &str) -> Result<Option<Value>, Failure> {
        let (status, text) = self.call("GET", path, None).await?;
        let is_none = status == 404 || (status == 403 && text.contains("ACL not found"));
        match status {
            200..300 => Ok(Some(serde_json::from_str(&text).unwrap_or(Value::Null))),
            _ if is_none => Ok(None),
            _ => Err(self.refused("GET", path, status, &text)),
        }
    }

    /// # Errors
    /// It is not reached, or refuses.
    async fn change(&self, method: &str, path: &str, body: Option<&Value>) -> Result<(), Failure> {
        let (status, text) = self.call(method, path, body).await?;
        match status {
            200..300 => Ok(()),
            _ => Err(self.refused(method, path, status, &text)),
        }
    }

    /// Shows what is to be made, asks, and makes it; or says that it is there.
    ///
    /// # Errors
    /// It is refused, or the answer is no.
    pub(super) async fn make(
        &self,
        what: &str,
        is_there: bool,
        (method, path, body): (&str, &str, &Value),
    ) -> Result<(), Failure> {
        if is_there {
            write_out(format!("[=] There is {what} already.\n"));
            return Ok(());
        }
        write_out(format!("\nThis is {what}:\n\n{}\n", json(body)));
        if !self.agreed(&format!("Create {what} in {}?", self.name))? {
            let advice = "what was made so far is removed with -destroy";
            return Err(anyhow!("Error setting up {}: stopped before {what}: {advice}", self.name).into());
        }
        self.change(method, path, Some(body)).await?;
        write_out(format!("[+] Created {what}.\n"));
        Ok(())
    }

    /// Asks, and removes it; or says why it stays. `place`: where it is, if this command has made it.
    ///
    /// # Errors
    /// It is refused, or nobody is there to answer.
    pub(super) async fn remove(
        &self,
        what: &str,
        is_there: bool,
        place: Option<&str>,
    ) -> Result<(), Failure> {
        let said = match place {
            _ if !is_there => format!("[=] There is no longer {what}.\n"),
            None => format!("[=] Left {what}: it was not made by this command.\n"),
            Some(_) if !self.agreed(&format!("Remove {what} from {}?", self.name))? => {
                format!("[=] Left {what}.\n")
            }
            Some(place) => {
                self.change("DELETE", place, None).await?;
                format!("[-] Removed {what}.\n")
            }
        };
        write_out(said);
        Ok(())
    }

    /// Asks; nothing and whatever begins with `y` is a yes.
    ///
    /// # Errors
    /// Nobody is there to answer.
    fn agreed(&self, question: &str) -> Result<bool, Failure> {
        if self.yes {
            return Ok(true);
        }
        write_out(format!("[?] {question} [Y/n] "));
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer).map_err(anyhow::Error::from)?;
        if read == 0 && !io::stdin().is_terminal() {
            write_out("\n");
            let why = "this needs an answer, and the input is at its end: -y asks no questions";
            return Err(anyhow!("Error setting up {}: {why}", self.name).into());
        }
        let answer = answer.trim().to_lowercase();
        Ok(answer.is_empty() || answer == "y" || answer == "yes")
    }

    async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, String), Failure> {
        let doing = format!("asking {}: {method} /v1/{path}", self.name);
        let request = ApiRequest {
            method: method.to_string(),
            path: format!("/v1/{path}"),
            filter: String::new(),
            headers: self.headers.clone(),
            body: body.map(Value::to_string).unwrap_or_default().into(),
        };
        let response = self.client.call_raw(request).await.doing(&doing)?;
        let status = response.status().as_u16();
        let text = response.text().await.map_err(|error| anyhow!("Error {doing}: {error}"))?;
        Ok((status, text))
    }

    fn refused(&self, method: &str, path: &str, status: u16, text: &str) -> Failure {
        anyhow!("Error asking {}: {method} /v1/{path}: {status} ({})", self.name, text.trim()).into()
    }
}

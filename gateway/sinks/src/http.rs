//! The client of sinks that are asked over HTTP.

use delivery::{AddressRules, dial};
use keyring::Items;
use reqwest::Url;

use crate::trust::Trust;

/// Nobody but whoever made the sink says where events go: no redirect, no proxy, and no address that is not allowed.
pub(crate) struct Http {
    pub url: Url,
    rules: AddressRules,
    /// Made anew when what it is proved by has changed.
    client: Option<(Trust, reqwest::Client)>,
}

impl Http {
    pub(crate) fn new(url: &str, rules: &AddressRules) -> Result<Http, String> {
        let url = Url::parse(url).map_err(|error| format!("{url}: {error}"))?;
        Ok(Http { url, rules: rules.clone(), client: None })
    }

    /// A request to the URL.
    ///
    /// # Errors
    /// The address is not allowed, or the variable's certificates are wrong.
    pub(crate) fn post(&mut self, secret: &Items) -> Result<reqwest::RequestBuilder, String> {
        dial::check_host(&self.url, &self.rules)?;
        let trust = Trust::of(secret);
        if let Some((_, client)) = self.client.as_ref().filter(|(known, _)| *known == trust) {
            return Ok(client.post(self.url.clone()));
        }
        let client = dial::http_client(&self.rules, trust.config()?)?;
        let request = client.post(self.url.clone());
        self.client = Some((trust, client));
        Ok(request)
    }
}

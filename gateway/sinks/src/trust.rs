//! Whom targets are proved by, and what is proved to them: items of a sink's variable. The API names no files of servers.

use keyring::Items;
use rustls::ClientConfig;

/// Authorities in PEM; without it those that the host trusts.
const CA: &str = "ca";
/// A certificate of our own and its key, both in PEM.
const CERTIFICATE: &str = "client_cert";
const KEY: &str = "client_key";

/// As it stands in a variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trust {
    authorities: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

impl Trust {
    pub(crate) fn of(secret: &Items) -> Trust {
        let item = |name: &str| secret.get(name).cloned();
        Trust { authorities: item(CA), certificate: item(CERTIFICATE), key: item(KEY) }
    }

    /// # Errors
    /// Which item is missing or wrong.
    pub(crate) fn config(&self) -> Result<ClientConfig, String> {
        let own = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some((certificate.as_str(), key.as_str())),
            (None, None) => None,
            (Some(_), None) => return Err(format!("the variable has {CERTIFICATE} without {KEY}")),
            (None, Some(_)) => return Err(format!("the variable has {KEY} without {CERTIFICATE}")),
        };
        let authorities: Vec<String> = self.authorities.iter().cloned().collect();
        tls::client::config_of_pem(&authorities, own).map_err(|error| format!("certificates: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_is_missing_or_wrong_is_named() {
        let of = |items: &[(&str, &str)]| {
            let items = items.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            Trust::of(&items).config()
        };
        assert!(of(&[]).is_ok());
        let why = |items: &[(&str, &str)]| of(items).unwrap_err();
        assert_eq!(why(&[("client_key", "x")]), "the variable has client_key without client_cert");
        assert_eq!(why(&[("client_cert", "x")]), "the variable has client_cert without client_key");
        assert!(why(&[("ca", "x")]).starts_with("certificates: ca-cert: "), "{}", why(&[("ca", "x")]));
        assert!(why(&[("client_cert", "x"), ("client_key", "y")]).contains("client-cert: "));
    }
}

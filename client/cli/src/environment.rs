//! Settings from environment variables. The environment is read only here.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// The agent's address if none is given.
pub(crate) const ADDRESS_DEFAULT: &str = "http://127.0.0.1:4646";

/// The settings of all commands that come from the environment. Flags win over them. Empty means unset.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    pub address: String,
    pub namespace: String,
    pub region: String,
    pub token: String,
    /// For the cluster that `import nomad-api` reads.
    pub from_token: String,
    pub http_auth: String,
    pub ca_cert: String,
    pub ca_path: String,
    pub client_cert: String,
    pub client_key: String,
    pub tls_server_name: String,
    /// A boolean, as it is written.
    pub skip_verify: String,
    /// Of the agent: with what a new node introduces itself.
    pub client_intro_token: String,
    pub no_color: bool,
    pub force_color: bool,
    /// Hints about the web UI are switched off.
    pub hide_hints: bool,
    /// The typed command line, when a shell asks for completions.
    pub completed_line: Option<String>,
    /// The cursor's position in it.
    pub completed_point: Option<usize>,
    pub home: String,
    /// Where fish and others keep their settings. Default: below `home`.
    pub config_home: String,
    /// Where Consul and Vault are and what proves who asks, as their own programs read it: `CONSUL_…`, `VAULT_…`.
    pub systems: BTreeMap<String, String>,
    /// Values of job variables: `NOMAD_VAR_name`.
    pub variables: BTreeMap<String, String>,
}

impl Environment {
    pub(crate) fn read(variables: impl Iterator<Item = (OsString, OsString)>) -> Environment {
        let mut environment = Environment::default();
        // None of our variables has a name or value that is not UTF-8.
        for (name, value) in variables {
            if let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) {
                environment.take(&name, value);
            }
        }
        environment
    }

    /// A variable of Consul or Vault; empty where it is not set.
    pub(crate) fn of_systems(&self, name: &str) -> &str {
        self.systems.get(name).map_or("", String::as_str)
    }

    fn take(&mut self, name: &str, value: String) {
        match name {
            "NOMAD_ADDR" => self.address = value,
            "NOMAD_NAMESPACE" => self.namespace = value,
            "NOMAD_REGION" => self.region = value,
            "NOMAD_CLIENT_INTRO_TOKEN" => self.client_intro_token = value,
            "NOMAD_TOKEN" => self.token = value,
            "NOMAD_FROM_TOKEN" => self.from_token = value,
            "NOMAD_HTTP_AUTH" => self.http_auth = value,
            "NOMAD_CACERT" => self.ca_cert = value,
            "NOMAD_CAPATH" => self.ca_path = value,
            "NOMAD_CLIENT_CERT" => self.client_cert = value,
            "NOMAD_CLIENT_KEY" => self.client_key = value,
            "NOMAD_TLS_SERVER_NAME" => self.tls_server_name = value,
            "NOMAD_SKIP_VERIFY" => self.skip_verify = value,
            "NOMAD_CLI_NO_COLOR" => self.no_color = true,
            // https://no-color.org: for all programs.
            "NO_COLOR" => self.no_color |= !value.is_empty(),
            "NOMAD_CLI_FORCE_COLOR" => self.force_color = true,
            "NOMAD_CLI_SHOW_HINTS" => self.hide_hints = api::go_bool(&value) == Some(false),
            "COMP_LINE" => self.completed_line = Some(value),
            "COMP_POINT" => self.completed_point = value.parse().ok(),
            "HOME" => self.home = value,
            "XDG_CONFIG_HOME" => self.config_home = value,
            _ if name.starts_with("CONSUL_") || name.starts_with("VAULT_") => {
                self.systems.insert(name.to_string(), value);
            }
            _ => {
                if let Some(variable) = name.strip_prefix("NOMAD_VAR_").filter(|name| !name.is_empty()) {
                    self.variables.insert(variable.to_string(), value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_variables_are_taken() {
        let given = [("NOMAD_ADDR", "http://x:1"), ("NOMAD_VAR_image", "redis"), ("PATH", "/bin")];
        let environment = Environment::read(given.map(|(k, v)| (k.into(), v.into())).into_iter());
        assert_eq!(environment.address, "http://x:1");
        assert_eq!(environment.variables, BTreeMap::from([("image".to_string(), "redis".to_string())]));
        assert!(!environment.no_color);
        for (value, expected) in [("1", true), ("", false)] {
            let environment = Environment::read(std::iter::once(("NO_COLOR".into(), value.into())));
            assert_eq!(environment.no_color, expected);
        }
    }
}

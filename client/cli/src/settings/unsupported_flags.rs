//! Flags of Nomad's `agent` that this release does not support. They are listed, so that the error says "not
//! supported" and not "not defined"; help pages leave them out.

use super::AgentSettings;
use crate::flags::{AnyFlag, Args, Flag, FlagList, Takes};

const fn text(name: &'static str) -> Flag<String> {
    Flag::value(name, "TEXT", "")
}

const fn yes(name: &'static str) -> Flag<bool> {
    Flag::switch(name, "")
}

/// Flags without effect: they are listed in [`AgentSettings::notes`].
const IGNORED: FlagList = &[
    &text("alloc-mounts-dir"),
    &text("eventlog-level"),
    &text("host-volume-plugin-dir"),
    &text("host-volumes-dir"),
    &text("network-speed"),
    &text("plugin-dir"),
    &text("raft-protocol"),
    &yes("eventlog"),
    &yes("log-include-location"),
    &yes("rejoin"),
];

/// Flags that are rejected.
const REJECTED: FlagList = &[
    &text("consul-address"),
    &text("consul-auth"),
    &text("consul-ca-file"),
    &text("consul-cert-file"),
    &text("consul-client-failures-before-critical"),
    &text("consul-client-failures-before-warning"),
    &text("consul-client-http-check-name"),
    &text("consul-client-service-name"),
    &text("consul-key-file"),
    &text("consul-server-failures-before-critical"),
    &text("consul-server-failures-before-warning"),
    &text("consul-server-http-check-name"),
    &text("consul-server-rpc-check-name"),
    &text("consul-server-serf-check-name"),
    &text("consul-server-service-name"),
    &text("consul-token"),
    &text("preferred-address-family"),
    &text("vault-address"),
    &text("vault-ca-file"),
    &text("vault-ca-path"),
    &text("vault-cert-file"),
    &text("vault-create-from-role"),
    &text("vault-key-file"),
    &text("vault-namespace"),
    &text("vault-tls-server-name"),
    &yes("consul-auto-advertise"),
    &yes("consul-checks-use-advertise"),
    &yes("consul-client-auto-join"),
    &yes("consul-server-auto-join"),
    &yes("consul-ssl"),
    &yes("consul-verify-ssl"),
    &yes("dev-connect"),
    &yes("dev-consul"),
    &yes("dev-vault"),
    &yes("vault-enabled"),
    &yes("vault-tls-skip-verify"),
];

pub(crate) const UNSUPPORTED_FLAGS: &[FlagList] = &[IGNORED, REJECTED];

/// Notes flags without effect, and rejects the others.
///
/// # Errors
/// Every flag that is rejected.
pub(super) fn check(settings: &mut AgentSettings, args: &Args) -> anyhow::Result<()> {
    for flag in IGNORED.iter().filter(|flag| args.last(**flag).is_some()) {
        settings.notes.push(format!("-{} has no effect", flag.spec().name));
    }
    let asks = |flag: &&&dyn AnyFlag| match (args.last(**flag), &flag.spec().takes) {
        (None, _) => false,
        (Some(value), Takes::Switch) => value == "true",
        (Some(value), Takes::Value(_)) => !value.is_empty(),
    };
    let asked: Vec<String> =
        REJECTED.iter().filter(asks).map(|flag| format!("-{}", flag.spec().name)).collect();
    match asked.as_slice() {
        [] => Ok(()),
        [one] => anyhow::bail!("{one} is not supported by this release: leave it out"),
        more => anyhow::bail!("not supported by this release: {}: leave them out", more.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{parse, specs};

    fn notes(words: &[&str]) -> Result<Vec<String>, String> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let args = parse(specs(UNSUPPORTED_FLAGS), &words).unwrap();
        let mut settings = AgentSettings::dev();
        settings.notes.clear();
        check(&mut settings, &args).map_err(|error| error.to_string())?;
        Ok(settings.notes)
    }

    #[test]
    fn unsupported_flags_are_rejected_or_noted() {
        assert_eq!(notes(&["-rejoin", "-dev-consul=false"]).unwrap(), ["-rejoin has no effect"]);
        let refused = notes(&["-consul-address=127.0.0.1:8500"]).unwrap_err();
        assert_eq!(refused, "-consul-address is not supported by this release: leave it out");
        let refused = notes(&["-dev-vault", "-vault-enabled=false", "-dev-connect"]).unwrap_err();
        assert_eq!(refused, "not supported by this release: -dev-connect, -dev-vault: leave them out");
    }
}

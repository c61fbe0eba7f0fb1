//! Flags of Nomad's `agent` that this release does not support. They are listed, so that the error says "not
//! supported" and not "not defined"; help pages leave them out.

use super::AgentSettings;
use super::unsupported::NO_MOUNTS;
use crate::flags::{AnyFlag, Args, Flag, FlagList, Takes};

const fn text(name: &'static str) -> Flag<String> {
    Flag::value(name, "TEXT", "")
}

const fn yes(name: &'static str) -> Flag<bool> {
    Flag::switch(name, "")
}

/// Flags without effect: they are listed in [`AgentSettings::notes`], each with its reason.
const IGNORED: FlagList = &[
    &text("alloc-mounts-dir"),
    &text("eventlog-level"),
    &text("raft-protocol"),
    &yes("consul-checks-use-advertise"),
    &yes("consul-client-auto-join"),
    &yes("consul-server-auto-join"),
    &yes("eventlog"),
    &yes("rejoin"),
];

/// Flags that are rejected.
const REJECTED: FlagList = &[&yes("dev-connect")];

/// Why a flag is not what it is in Nomad.
fn why(name: &str) -> &'static str {
    match name {
        "eventlog" | "eventlog-level" => "it is of Windows",
        "raft-protocol" => "the log of the cluster is another one than Nomad's",
        "consul-checks-use-advertise" => "checks in Consul always use what the agent advertises",
        "consul-client-auto-join" | "consul-server-auto-join" => {
            "agents do not look for each other in Consul"
        }
        "rejoin" => "a server joins those that it is told to join, whatever it did before",
        "alloc-mounts-dir" => NO_MOUNTS,
        "dev-connect" => "no proxies of a service mesh run here",
        other => unreachable!("-{other} has a reason"),
    }
}

pub(crate) const UNSUPPORTED_FLAGS: &[FlagList] = &[IGNORED, REJECTED];

/// Notes flags without effect, and rejects the others.
///
/// # Errors
/// Every flag that is rejected.
pub(super) fn check(settings: &mut AgentSettings, args: &Args) -> anyhow::Result<()> {
    for flag in IGNORED.iter().filter(|flag| args.last(**flag).is_some()) {
        let name = flag.spec().name;
        settings.notes.push(format!("-{name} has no effect: {}", why(name)));
    }
    let asks = |flag: &&&dyn AnyFlag| match (args.last(**flag), &flag.spec().takes) {
        (None, _) => false,
        (Some(value), Takes::Switch) => value == "true",
        (Some(value), Takes::Value(_)) => !value.is_empty(),
    };
    let asked: Vec<String> = REJECTED.iter().filter(asks).map(|flag| flag.spec().name).map(refusal).collect();
    anyhow::ensure!(asked.is_empty(), "{}", asked.join("; "));
    Ok(())
}

fn refusal(name: &str) -> String {
    format!("-{name} is not supported: {}: leave it out", why(name))
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
        let noted =
            "-rejoin has no effect: a server joins those that it is told to join, whatever it did before";
        assert_eq!(notes(&["-rejoin", "-dev-connect=false"]).unwrap(), [noted]);
        let noted = "-alloc-mounts-dir has no effect: nothing is mounted there: tasks of drivers that unveil see their \
                     directories in alloc_dir";
        assert_eq!(notes(&["-alloc-mounts-dir=/x"]).unwrap(), [noted]);
        let refused = notes(&["-alloc-mounts-dir=/x", "-dev-connect"]).unwrap_err();
        let unsupported =
            "-dev-connect is not supported: no proxies of a service mesh run here: leave it out";
        assert_eq!(refused, unsupported);
        for flag in UNSUPPORTED_FLAGS.iter().flat_map(|list| list.iter()) {
            assert!(!why(flag.spec().name).is_empty());
        }
    }
}

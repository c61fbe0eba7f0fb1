use serde_json::{Value, json};

use crate::call::{Call, Command, Outcome, Run};
use crate::output::write_out;

/// The release of Nomad that this program is compatible with, for tools that ask `nomad` for its version.
const NOMAD_VERSION: &str = "2.0.0";

/// Date and revision of the build, if known.
const BUILD_DATE: Option<&str> = option_env!("SOJOURN_BUILD_DATE");
const REVISION: Option<&str> = option_env!("SOJOURN_REVISION");

pub(crate) static COMMAND: Command = Command {
    name: "version",
    aliases: &[],
    arguments: "",
    summary: "Print the version of this program.",
    details: "",
    flags: &[],
    run: Run::Process(run),
};

fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    write_out(text(&call.program));
    Ok(0)
}

/// The version as `agent/self` shows it.
pub(crate) fn document() -> Value {
    json!({
        "Version": NOMAD_VERSION,
        "VersionPrerelease": "",
        "VersionMetadata": concat!("sojourn.", env!("CARGO_PKG_VERSION")),
        "Revision": REVISION.unwrap_or_default(),
        "BuildDate": BUILD_DATE,
    })
}

/// The version, with date and revision of the build if known.
pub(crate) fn text(program: &str) -> String {
    let own = env!("CARGO_PKG_VERSION");
    let mut text = match program {
        "nomad" => format!("Nomad v{NOMAD_VERSION}+sojourn.{own}\n"),
        _ => format!("Sojourn v{own} (compatible with Nomad {NOMAD_VERSION})\n"),
    };
    if let Some(date) = BUILD_DATE {
        text.push_str(&format!("BuildDate {date}\n"));
    }
    if let Some(revision) = REVISION {
        text.push_str(&format!("Revision {revision}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_that_ask_nomad_find_its_version() {
        assert!(text("nomad").starts_with("Nomad v2.0.0+sojourn."));
        assert!(text("sojourn").starts_with("Sojourn v"));
    }

    /// The commit's own, so that the same sources make the same program; without a repository there are none.
    #[test]
    fn a_build_from_a_repository_says_which_revision_it_is_of() {
        let lines: Vec<String> = text("nomad").lines().skip(1).map(str::to_string).collect();
        match (BUILD_DATE, REVISION) {
            (Some(date), Some(revision)) => {
                assert!(date.parse::<jiff::Timestamp>().is_ok(), "{date}");
                assert_eq!(lines, [format!("BuildDate {date}"), format!("Revision {revision}")]);
            }
            (None, None) => assert!(lines.is_empty()),
            other => panic!("both or none: {other:?}"),
        }
    }
}

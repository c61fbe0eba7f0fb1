use crate::call::{Call, Command, Outcome, Run};
use crate::output::write_out;

/// The release of Nomad that this program is compatible with. What asks `nomad` for its version asks for this.
pub const NOMAD_VERSION: &str = "2.0.0";

/// When and of what this program was built, if the build said so.
const BUILD_DATE: Option<&str> = option_env!("SOJOURN_BUILD_DATE");
const REVISION: Option<&str> = option_env!("SOJOURN_REVISION");

pub static COMMAND: Command = Command {
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

/// The version, and when and of what it was built where that is known.
pub fn text(program: &str) -> String {
    let own = env!("CARGO_PKG_VERSION");
    let mut text = match program {
        "nomad" => format!("Nomad v{NOMAD_VERSION}+sojourn.{own}\n"),
        _ => format!("Sojourn v{own} (contract {NOMAD_VERSION})\n"),
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
    fn tools_that_ask_nomad_find_the_contract() {
        assert!(text("nomad").starts_with("Nomad v2.0.0+sojourn."));
        assert!(text("sojourn").starts_with("Sojourn v"));
    }
}

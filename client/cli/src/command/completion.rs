use crate::call::{Call, Command, Outcome, Run};
use crate::complete::install::script;
use crate::output::write_out;

pub(super) static COMMAND: Command = Command {
    name: "completion",
    aliases: &[],
    arguments: "<bash|zsh|fish>",
    summary: "Print what makes a shell complete command lines.",
    details: "For a package or a file of one's own, like\n  source <(sojourn completion bash)\n\
              The shell then asks the program, which also completes ids, from the cluster that NOMAD_ADDR names.\n\
              -autocomplete-install writes the same into the configuration of one's shells.",
    flags: &[],
    run: Run::Process(run),
};

fn run(call: Call) -> Outcome {
    let shell = call.one_argument()?;
    // By its name: where the program is may change, and it is on the path.
    match script(shell, &call.program, &call.program) {
        Some(text) => {
            write_out(text);
            Ok(0)
        }
        None => Err(call.usage(&format!("expected bash, zsh or fish, not \"{shell}\""))),
    }
}

use crate::call::{Call, Command, Outcome, Run};
use crate::flags::Flag;
use crate::job_file::write_new;
use crate::output::write_out;

const EXAMPLE_HCL: &str = include_str!("../../examples/pool.nomad.hcl");
const EXAMPLE_JSON: &str = include_str!("../../examples/pool.nomad.json");

const OUT: Flag<String> = Flag::value("out", "FORM", "hcl or json. Default: hcl.");
const QUIET: Flag<bool> = Flag::switch("quiet", "Print nothing.");

pub(super) static COMMAND: Command = Command {
    name: "node pool init",
    aliases: &[],
    arguments: "[<filename>]",
    summary: "Write an example of a node pool's file.",
    details: "",
    flags: &[&[&OUT, &QUIET]],
    run: Run::Process(init),
};

fn init(call: Call) -> Outcome {
    let (text, usual) = match call.args.value(&OUT).unwrap_or("hcl") {
        "hcl" => (EXAMPLE_HCL, "pool.nomad.hcl"),
        "json" => (EXAMPLE_JSON, "pool.nomad.json"),
        other => return Err(call.usage(&format!("-out is hcl or json, not \"{other}\""))),
    };
    let path = call.optional_argument()?.unwrap_or(usual);
    write_new(path, text)?;
    if !call.args.switch(&QUIET) {
        write_out(format!("Example node pool specification written to {path}\n"));
    }
    Ok(0)
}

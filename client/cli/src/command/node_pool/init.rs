use crate::call::{Call, Command, Outcome, Run};
use crate::flags::{switch, value};
use crate::job_file::write_new;
use crate::output::write_out;

const EXAMPLE_HCL: &str = include_str!("../../examples/pool.nomad.hcl");
const EXAMPLE_JSON: &str = include_str!("../../examples/pool.nomad.json");

pub static COMMAND: Command = Command {
    name: "node pool init",
    aliases: &[],
    arguments: "[<filename>]",
    summary: "Write an example of a node pool's file.",
    details: "",
    flags: &[&[
        value("out", "FORM", "hcl, or json; hcl unless told."),
        switch("quiet", "Do not say what was written."),
    ]],
    run: Run::Process(init),
};

fn init(call: Call) -> Outcome {
    let (text, usual) = match call.args.value("out").unwrap_or("hcl") {
        "hcl" => (EXAMPLE_HCL, "pool.nomad.hcl"),
        "json" => (EXAMPLE_JSON, "pool.nomad.json"),
        other => return Err(call.usage(&format!("-out is hcl or json, not \"{other}\""))),
    };
    let path = call.optional_argument()?.unwrap_or(usual);
    write_new(path, text)?;
    if !call.args.switch("quiet") {
        write_out(format!("Example node pool specification written to {path}\n"));
    }
    Ok(0)
}

use crate::call::{Call, Command, Outcome, Run};
use crate::flags::Flag;
use crate::job_file::write_new;
use crate::output::write_out;

const OUT: Flag<String> = Flag::value("out", "FORMAT", "hcl or json. Default: hcl.");
const QUIET: Flag<bool> = Flag::switch("quiet", "Without explanations.");

pub(super) static COMMAND: Command = Command {
    name: "var init",
    aliases: &[],
    arguments: "[<filename>]",
    summary: "Write an example of a variable's file, for var put.",
    details: "The default file name is spec.nv.hcl, or spec.nv.json. Existing files are not overwritten.",
    flags: &[&[&OUT, &QUIET]],
    run: Run::Process(run),
};

const HCL: &str = include_str!("../../examples/variable.nv.hcl");
const JSON: &str = include_str!("../../examples/variable.nv.json");

fn run(call: Call) -> Outcome {
    let (name, text) = match call.args.value(&OUT).unwrap_or("hcl") {
        "hcl" if call.args.switch(&QUIET) => ("spec.nv.hcl", without_comments(HCL)),
        "hcl" => ("spec.nv.hcl", HCL.to_string()),
        // Comments have no place in it.
        "json" => ("spec.nv.json", JSON.to_string()),
        other => return Err(anyhow::anyhow!("invalid -out \"{other}\": expected hcl or json").into()),
    };
    let path = call.optional_argument()?.unwrap_or(name);
    write_new(path, &text)?;
    write_out(format!("Example variable specification written to {path}\n"));
    Ok(0)
}

fn without_comments(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    text.trim_start().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::spec::{Format, read};
    use super::*;

    #[test]
    fn the_examples_are_variables() {
        for (text, format) in
            [(HCL, Format::Hcl), (JSON, Format::Json), (&*without_comments(HCL), Format::Hcl)]
        {
            let variable = read("spec", text, format).unwrap();
            assert_eq!((variable.path.as_str(), variable.items.len()), ("path/to/variable", 2), "{text}");
        }
        assert!(!without_comments(HCL).contains('#'));
    }
}

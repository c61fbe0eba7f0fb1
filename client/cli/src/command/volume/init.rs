use crate::call::{Call, Command, Outcome, Run};
use crate::flags::Flag;
use crate::job_file::write_new;
use crate::output::write_out;

const TYPE: Flag<String> = Flag::value("type", "TYPE", "csi or host. Default: csi.");

pub(super) static COMMAND: Command = Command {
    name: "volume init",
    aliases: &[],
    arguments: "[<filename>]",
    summary: "Write an example of a volume's file.",
    details: "The default file name is volume.hcl, or volume.host.hcl. Existing files are not overwritten.",
    flags: &[&[&TYPE]],
    run: Run::Process(run),
};

pub(super) const CSI: &str = include_str!("../../examples/volume.csi.hcl");
pub(super) const HOST: &str = include_str!("../../examples/volume.host.hcl");

fn run(call: Call) -> Outcome {
    let (name, text) = match call.args.value(&TYPE).unwrap_or("csi") {
        "csi" => ("volume.hcl", CSI),
        "host" => ("volume.host.hcl", HOST),
        other => return Err(anyhow::anyhow!("invalid -type \"{other}\": expected csi or host").into()),
    };
    let path = call.optional_argument()?.unwrap_or(name);
    write_new(path, text)?;
    write_out(format!("Example volume specification written to {path}\n"));
    Ok(0)
}

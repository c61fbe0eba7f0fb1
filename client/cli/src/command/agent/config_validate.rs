use crate::call::{Call, Command, Outcome, Run};
use crate::flags::{parse, specs};
use crate::output::{OutputStyle, Paint, write_err, write_out};
use crate::settings;

pub(super) static COMMAND: Command = Command {
    name: "config validate",
    aliases: &[],
    arguments: "<config_path> [<config_path...>]",
    summary: "Check the configuration of an agent without starting one.",
    details: "Each path is a file or a directory; later ones win, as for the agent.",
    flags: &[&[]],
    run: Run::Process(run),
};

fn run(call: Call) -> Outcome {
    if call.args.words.is_empty() {
        return Err(call.usage("Must specify at least one config file or directory"));
    }
    let flags: Vec<String> = call.args.words.iter().map(|path| format!("-config={path}")).collect();
    let args = parse(specs(&[settings::AGENT_FLAGS]), &flags)?;
    let settings = settings::read(&args, &call.environment)?;
    for note in &settings.notes {
        write_err(note);
    }
    let style: OutputStyle = call.style();
    write_out(style.paint(Paint::Green, "Configuration is valid!") + "\n");
    Ok(0)
}

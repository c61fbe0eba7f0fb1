use api::Variable;
use sdk::VariableChange;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run, UI, VERBOSE};
use crate::flags::Flag;
use crate::hint;
use crate::output::write_err;

use super::spec::{Format, item, read, standard_input};
use super::{Out, conflict, locked};

const CHECK_INDEX: Flag<u64> = Flag::number(
    "check-index",
    "INDEX",
    "Only if it was last modified at this index; 0: only if there is none.",
);
const FORCE: Flag<bool> = Flag::switch("force", "Whatever the index in the file says.");
const IN: Flag<String> =
    Flag::value("in", "FORMAT", "hcl or json, for standard input and files of another name. Default: json.");
const OUT: Flag<String> =
    Flag::value("out", "FORMAT", "none, table, hcl, json or go-template. Default: none.");
const TEMPLATE: Flag<String> = Flag::value("template", "TEMPLATE", "The template of -out=go-template.");

pub(super) static COMMAND: Command = Command {
    name: "var put",
    aliases: &[],
    arguments: "[<path>|-|@file] [key=value…]",
    summary: "Create or change a variable.",
    details: "With a path, and items as key=value, key=@file or key=- for standard input. A file (@file), or standard\n\
              input (-), describes a variable in HCL or JSON, see var init; it may follow the path, and items change\n\
              what it says. If it has a modify index, the variable is written only if nobody changed it since, unless\n\
              -force is given.",
    flags: &[&[&CHECK_INDEX, &FORCE, &IN, &OUT, &TEMPLATE, &UI, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(put(call))),
};

async fn put(call: Call) -> Outcome {
    let out = Out::of(call.args.value(&OUT).unwrap_or("none"), call.args.value(&TEMPLATE))?;
    let variable = described(&call)?;
    let given = call.args.parsed(&CHECK_INDEX)?;
    let only_at = match (given, variable.modify_index) {
        (Some(_), _) if call.args.switch(&FORCE) => {
            return Err(call.usage("-force and -check-index exclude each other"));
        }
        (Some(given), _) => Some(given),
        (None, index) if index > 0 && !call.args.switch(&FORCE) => Some(index),
        (None, _) => None,
    };
    // That of the command counts before that of the file.
    let namespace = match call.namespace() {
        "" => variable.namespace.as_str(),
        given => given,
    };
    let client = call.client_in(namespace)?;
    let verbose = call.args.switch(&VERBOSE);
    if verbose {
        write_err(format_args!("Writing to path \"{}\"", variable.path));
    }
    let wanted = Variable {
        namespace: String::new(),
        path: variable.path.clone(),
        items: variable.items.clone(),
        ..Variable::default()
    };
    match client.set_variable(&wanted, only_at).await.doing("creating variable")? {
        VariableChange::Done(done) => {
            if verbose {
                let verb = if done.create_index == done.modify_index { "Created" } else { "Updated" };
                let (path, index) = (&done.path, done.modify_index);
                write_err(format_args!("{verb} variable \"{path}\" with modify index {index}"));
            }
            out.print(&call.style(), &done)?;
            let page = format!("variables/var/{}@{}", done.path, done.namespace);
            hint::show(&call, &call.style(), "this variable", &page).await;
            Ok(0)
        }
        VariableChange::Conflict(found) => match only_at {
            Some(given) if found.modify_index != given => Err(conflict(given, &found)),
            _ => Err(locked(&wanted.path)),
        },
    }
}

/// The variable that the arguments describe.
fn described(call: &Call) -> Result<Variable, Failure> {
    let words: Vec<&str> = call.args.words.iter().map(String::as_str).collect();
    let is_file = |word: &str| word == "-" || word.starts_with('@');
    let (path, file, items) = match words[..] {
        [] => return Err(call.usage("This command takes a path, a file or - for standard input")),
        [first, ref items @ ..] if is_file(first) => (None, Some(first), items),
        [path, file, ref items @ ..] if is_file(file) => (Some(path), Some(file), items),
        [path, ref items @ ..] => (Some(path), None, items),
    };
    let format = call.args.value(&IN);
    let mut variable = match file {
        None => Variable::default(),
        Some("-") => read("<stdin>", &standard_input()?, Format::of("", format)?)?,
        Some(file) => {
            let file = &file[1..];
            let text = std::fs::read_to_string(file);
            let text = text.map_err(|error| anyhow::anyhow!("cannot read {file}: {error}"))?;
            read(file, &text, Format::of(file, format)?)?
        }
    };
    if let Some(path) = path {
        if !variable.path.is_empty() && variable.path != path {
            let why = format!("the path \"{path}\" is not that of the file, \"{}\"", variable.path);
            return Err(anyhow::anyhow!(why).into());
        }
        variable.path = path.to_string();
    }
    if variable.path.is_empty() {
        return Err(anyhow::anyhow!("the variable has no path").into());
    }
    for argument in items {
        let (key, value) = item(argument)?;
        variable.items.insert(key, value);
    }
    if variable.items.is_empty() {
        return Err(anyhow::anyhow!("the variable has no items: expected KEY=VALUE").into());
    }
    Ok(variable)
}

use api::VariableMetadata;
use template::Template;

use anyhow::Context;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, PAGE_FLAGS, Run, UI};
use crate::flags::Flag;
use crate::hint;
use crate::layout;
use crate::output::{json, write_err, write_out};

const OUT: Flag<String> = Flag::value("out", "FORMAT", "table, terse, json or go-template. Default: table.");
const TEMPLATE: Flag<String> = Flag::value("template", "TEMPLATE", "The template of -out=go-template.");

pub(super) static COMMAND: Command = Command {
    name: "var list",
    aliases: &[],
    arguments: "[<prefix>]",
    summary: "List variables.",
    details: "Those whose paths begin with the argument, if there is one.",
    flags: &[&[&OUT, &TEMPLATE, &UI], PAGE_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

async fn list(call: Call) -> Outcome {
    let prefix = call.optional_argument()?.unwrap_or_default();
    let (out, template) = (call.args.value(&OUT).unwrap_or("table"), call.args.value(&TEMPLATE));
    if !["table", "terse", "json", "go-template"].contains(&out) {
        let why = format!("invalid -out \"{out}\": expected table, terse, json or go-template");
        return Err(anyhow::anyhow!(why).into());
    }
    if (out == "go-template") != template.is_some_and(|text| !text.is_empty()) {
        return Err(anyhow::anyhow!("-out=go-template and -template go together").into());
    }
    let client = call.client()?;
    let answer = client.variables(call.page()?.prefix(prefix)).await.doing("retrieving vars")?;
    print(&call, out, template.unwrap_or_default(), &answer.value)?;
    if let Some(token) = answer.next_token {
        write_err(format_args!("Next page token: {token}"));
    }
    hint::show(&call, &call.style(), "variables", "variables").await;
    Ok(0)
}

fn print(call: &Call, out: &str, template: &str, variables: &[VariableMetadata]) -> Outcome {
    let everywhere = call.namespace() == "*";
    match out {
        "json" => write_out(json(&variables)),
        "go-template" => {
            let template = Template::parse(template).context("Error parsing the template")?;
            let value = serde_json::to_value(variables).context("API objects serialize to JSON")?;
            write_out(template.render(&value).context("Error applying the template")? + "\n");
        }
        "terse" => {
            let line = |one: &VariableMetadata| match everywhere {
                true => format!("{}\t{}\n", one.namespace, one.path),
                false => format!("{}\n", one.path),
            };
            write_out(variables.iter().map(line).collect::<String>());
        }
        _ if variables.is_empty() => write_out("No variables found\n"),
        _ => write_out(layout::variable::table(&call.style(), variables)),
    }
    Ok(0)
}

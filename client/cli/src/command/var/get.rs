use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run, UI};
use crate::flags::Flag;
use crate::hint;
use crate::output::write_out;

use super::Out;

const ITEM: Flag<String> = Flag::value("item", "KEY", "Print the value of this item, and nothing else.");
const OUT: Flag<String> =
    Flag::value("out", "FORMAT", "table, hcl, json, go-template or none. Default: table.");
const TEMPLATE: Flag<String> = Flag::value("template", "TEMPLATE", "The template of -out=go-template.");
const VERSION: Flag<u64> = Flag::number("version", "N", "What it held then: see var history.");

pub(super) static COMMAND: Command = Command {
    name: "var get",
    aliases: &[],
    arguments: "<path>",
    summary: "Show a variable and its items.",
    details: "",
    flags: &[&[&ITEM, &OUT, &TEMPLATE, &VERSION, &UI], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(get(call))),
};

async fn get(call: Call) -> Outcome {
    let path = call.one_argument()?;
    let out = Out::of(call.args.value(&OUT).unwrap_or("table"), call.args.value(&TEMPLATE))?;
    let client = call.client()?;
    let variable = match call.args.parsed(&VERSION)? {
        None => client.variable(path).await.doing("retrieving variable")?,
        Some(version) => {
            client.variable_version(path, version).await.doing("retrieving version of variable")?
        }
    };
    if let Some(item) = call.args.value(&ITEM) {
        let value = variable.items.get(item);
        let value = value.ok_or_else(|| anyhow::anyhow!("Variable does not contain \"{item}\" item"))?;
        write_out(format!("{value}\n"));
        return Ok(0);
    }
    out.print(&call.style(), &variable)?;
    let page = format!("variables/var/{path}@{}", variable.namespace);
    hint::show(&call, &call.style(), "this variable", &page).await;
    Ok(0)
}

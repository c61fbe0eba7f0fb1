use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run};
use crate::flags::Flag;
use crate::object_format::ObjectFormat;
use crate::output::write_out;

const PRETTY: Flag<bool> = Flag::switch("pretty", "Indent the JSON.");
const FORMAT: Flag<String> = Flag::value("format", "FORM", "Another format, like prometheus.");

pub(super) static COMMAND: Command = Command {
    name: "operator metrics",
    aliases: &[],
    arguments: "",
    summary: "Print the metrics of the agent.",
    details: "",
    flags: &[&[&PRETTY, &FORMAT], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    let template_or_json = call.object_format()?;
    let format = call.args.value(&FORMAT).unwrap_or_default();
    let query = Query::new().with("format", format).flag("pretty", call.args.switch(&PRETTY));
    let text = call.client()?.metrics(query).await.doing("querying metrics")?;
    match template_or_json {
        Some(template @ ObjectFormat::Template(_)) => {
            let value: serde_json::Value = serde_json::from_str(&text)
                .map_err(|error| anyhow::anyhow!("-t needs metrics in JSON, which these are not: {error}"))?;
            template.print(&value)
        }
        Some(ObjectFormat::Json) | None => {
            write_out(text.trim_end().to_string() + "\n");
            Ok(0)
        }
    }
}

use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run};
use crate::flags::{switch, value};
use crate::objects::Objects;
use crate::output::write_out;

pub static COMMAND: Command = Command {
    name: "operator metrics",
    aliases: &[],
    arguments: "",
    summary: "Print what the agent has measured of itself.",
    details: "",
    flags: &[
        &[
            switch("pretty", "Print it for people: indented."),
            value("format", "FORM", "Another form, like prometheus."),
        ],
        OBJECT_FLAGS,
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    let objects = call.objects()?;
    let format = call.args.value("format").unwrap_or_default();
    let query = Query::new().with("format", format).flag("pretty", call.args.switch("pretty"));
    let text = call.client()?.metrics(query).await.doing("querying metrics")?;
    match objects {
        Some(template @ Objects::Template(_)) => {
            let value: serde_json::Value = serde_json::from_str(&text)
                .map_err(|error| anyhow::anyhow!("-t needs metrics in JSON, which these are not: {error}"))?;
            template.print(&value)
        }
        Some(Objects::Json) | None => {
            write_out(text.trim_end().to_string() + "\n");
            Ok(0)
        }
    }
}

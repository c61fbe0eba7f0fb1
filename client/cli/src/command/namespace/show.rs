use api::Namespace;
use sdk::{Client, Query};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, Outcome, Run, TEMPLATE};
use crate::layout;
use crate::object_format::ObjectFormat;
use crate::output::write_out;

pub(crate) static LIST: Command = Command {
    name: "namespace list",
    aliases: &[],
    arguments: "",
    summary: "List namespaces.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

pub(crate) static STATUS: Command = Command {
    name: "namespace status",
    aliases: &[],
    arguments: "<namespace>",
    summary: "Show a namespace.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(status(call))),
};

pub(crate) static INSPECT: Command = Command {
    name: "namespace inspect",
    aliases: &[],
    arguments: "<namespace>",
    summary: "Print a namespace as JSON.",
    details: "",
    flags: &[&[&TEMPLATE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(inspect(call))),
};

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    let format = call.object_format()?;
    let namespaces = call.client()?.namespaces(Query::new()).await.doing("retrieving namespaces")?.value;
    if let Some(format) = format {
        return format.print(&namespaces);
    }
    write_out(match namespaces.as_slice() {
        [] => "No namespaces found\n".to_string(),
        namespaces => layout::namespace::table(namespaces),
    });
    Ok(0)
}

async fn status(call: Call) -> Outcome {
    let (given, format) = (call.one_argument()?, call.object_format()?);
    let namespace = chosen(&call.client()?, given).await?;
    if let Some(format) = format {
        return format.print(&namespace);
    }
    write_out(layout::namespace::block(&call.style(), &namespace));
    Ok(0)
}

async fn inspect(call: Call) -> Outcome {
    let (given, format) = (call.one_argument()?, call.object_format()?);
    let namespace = chosen(&call.client()?, given).await?;
    format.unwrap_or(ObjectFormat::Json).print(&namespace)
}

/// The namespace that has this name, or the only one whose name begins so.
async fn chosen(client: &Client, given: &str) -> Result<Namespace, Failure> {
    let found = client.namespaces(Query::new().prefix(given)).await.doing("retrieving namespaces")?.value;
    let exact = found.iter().position(|namespace| namespace.name == given);
    match (exact, found.len()) {
        (None, 0) => Err(anyhow::anyhow!("Namespace \"{given}\" matched no namespaces").into()),
        (None, 2..) => {
            let table = layout::namespace::table(&found);
            Err(Failure::Code(1, format!("Prefix matched multiple namespaces\n\n{}", table.trim_end())))
        }
        (at, _) => {
            let name = &found[at.unwrap_or(0)].name;
            client.namespace_named(name).await.doing("retrieving namespace")
        }
    }
}

use std::collections::BTreeSet;

use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, PAGE_FLAGS, Run, VERBOSE};
use crate::flags::Flag;
use crate::layout;
use crate::output::{Table, write_out};

pub(super) const COMMANDS: &[&Command] = &[&LIST, &INFO, &DELETE];

const NAME: Flag<String> = Flag::value("name", "NAME", "List only this one.");

pub(super) static LIST: Command = Command {
    name: "service list",
    aliases: &[],
    arguments: "",
    summary: "List the services registered in the cluster itself.",
    details: "",
    flags: &[&[&NAME], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

pub(super) static INFO: Command = Command {
    name: "service info",
    aliases: &[],
    arguments: "<service_name>",
    summary: "List the instances of a service and their addresses.",
    details: "",
    flags: &[PAGE_FLAGS, &[&VERBOSE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(info(call))),
};

static DELETE: Command = Command {
    name: "service delete",
    aliases: &[],
    arguments: "<service_name> <service_id>",
    summary: "Deregister an instance of a service.",
    details: "For instances that were left behind. One that still runs is listed again when its node registers anew.",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(delete(call))),
};

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    let (client, format) = (call.client()?, call.object_format()?);
    let mut found = client.services(Query::new()).await.doing("listing service registrations")?.value;
    if let Some(name) = call.args.value(&NAME) {
        for namespace in &mut found {
            namespace.services.retain(|service| service.service_name == name);
        }
        found.retain(|namespace| !namespace.services.is_empty());
    }
    if let Some(format) = format {
        return format.print(&found);
    }
    if found.iter().all(|namespace| namespace.services.is_empty()) {
        write_out("No service registrations found\n");
        return Ok(0);
    }
    let names = client.namespace() == "*";
    let space = names.then_some("Namespace");
    let mut table = Table::new(["Service Name"].into_iter().chain(space).chain(["Tags"]));
    for namespace in &found {
        for service in &namespace.services {
            let tags: BTreeSet<&str> = service.tags.iter().map(String::as_str).collect();
            let tags = tags.into_iter().collect::<Vec<_>>().join(",");
            let space = names.then(|| namespace.namespace.clone());
            table.row([service.service_name.clone()].into_iter().chain(space).chain([format!("[{tags}]")]));
        }
    }
    write_out(table.render());
    Ok(0)
}

async fn info(call: Call) -> Outcome {
    let (name, format) = (call.one_argument()?, call.object_format()?);
    let (client, style) = (call.client()?, call.style());
    let answer = client.service(name, call.page()?).await.doing("reading service registration")?;
    if let Some(format) = format {
        return format.print(&answer.value);
    }
    if answer.value.is_empty() {
        write_out("No service registrations found\n");
        return Ok(0);
    }
    write_out(layout::service::instances(&style, &answer.value));
    write_out(call.next_page(answer.next_token.as_deref()));
    Ok(0)
}

async fn delete(call: Call) -> Outcome {
    let (name, id) = call.two_arguments()?;
    call.client()?.delete_service(name, id).await.doing("deleting service registration")?;
    write_out("Successfully deleted service registration\n");
    Ok(0)
}

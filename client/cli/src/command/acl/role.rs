use model::document::{ACLRole, ACLRolePolicyLink, List};
use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, Outcome, Run};
use crate::flags::Flag;
use crate::layout;
use crate::output::write_out;

const NAME: Flag<String> = Flag::value("name", "NAME", "The name of the role.");
const DESCRIPTION: Flag<String> = Flag::value("description", "TEXT", "A description of the role.");
const POLICY: Flag<Vec<String>> =
    Flag::values("policy", "NAME", "A policy that the role has. May be given several times.");
const NO_MERGE: Flag<bool> = Flag::switch("no-merge", "Replace the role by what is given, all but its id.");
const BY_NAME: Flag<bool> = Flag::switch("by-name", "The argument is the name of the role.");

pub(super) static CREATE: Command = Command {
    name: "acl role create",
    aliases: &[],
    arguments: "",
    summary: "Create a role: policies that tokens have together.",
    details: "",
    flags: &[&[&NAME, &DESCRIPTION, &POLICY], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(create(call))),
};

pub(super) static DELETE: Command = Command {
    name: "acl role delete",
    aliases: &[],
    arguments: "<acl_role_id>",
    summary: "Delete a role.",
    details: "Tokens that have it lose what it gave them.",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(delete(call))),
};

pub(super) static INFO: Command = Command {
    name: "acl role info",
    aliases: &[],
    arguments: "<acl_role_id>",
    summary: "Show a role.",
    details: "",
    flags: &[&[&BY_NAME], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(info(call))),
};

pub(super) static LIST: Command = Command {
    name: "acl role list",
    aliases: &[],
    arguments: "",
    summary: "List roles.",
    details: "All of them with a management token, else those of the token.",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

pub(super) static UPDATE: Command = Command {
    name: "acl role update",
    aliases: &[],
    arguments: "<acl_role_id>",
    summary: "Change a role.",
    details: "What no flag names stays, and policies are added to those that it has, unless -no-merge is given.",
    flags: &[&[&NAME, &DESCRIPTION, &POLICY, &NO_MERGE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(update(call))),
};

async fn create(call: Call) -> Outcome {
    call.no_arguments()?;
    let role = ACLRole { name: name(&call)?, ..given(&call) };
    let role = call.client()?.apply_acl_role(&role).await.doing("creating ACL role")?;
    print(&call, &role)
}

async fn update(call: Call) -> Outcome {
    let id = call.one_argument()?;
    let (client, wanted) = (call.client()?, given(&call));
    let known = client.acl_role(id).await.doing("reading ACL role")?;
    let wanted = match call.args.switch(&NO_MERGE) {
        true => ACLRole { id: known.id, name: name(&call)?, ..wanted },
        false => merged(known, wanted),
    };
    let role = client.apply_acl_role(&wanted).await.doing("updating ACL role")?;
    print(&call, &role)
}

/// Without one there is no role.
fn name(call: &Call) -> Result<String, Failure> {
    let given = call.args.value(&NAME).filter(|name| !name.is_empty());
    given.map(str::to_string).ok_or_else(|| call.usage("-name is required"))
}

/// The role that the flags describe.
fn given(call: &Call) -> ACLRole {
    let text = |flag| call.args.value(flag).unwrap_or_default().to_string();
    let policies = call.args.values(&POLICY).iter().map(|name| ACLRolePolicyLink { name: name.clone() });
    ACLRole {
        name: text(&NAME),
        description: text(&DESCRIPTION),
        policies: policies.collect(),
        ..ACLRole::default()
    }
}

/// What is empty in the wanted role stays as it is.
fn merged(known: ACLRole, wanted: ACLRole) -> ACLRole {
    let or = |wanted: String, known: String| if wanted.is_empty() { known } else { wanted };
    let policies = known.policies.iter().chain(&wanted.policies).cloned();
    let mut policies: List<ACLRolePolicyLink> = policies.collect();
    policies.sort();
    policies.dedup();
    ACLRole {
        name: or(wanted.name, known.name),
        description: or(wanted.description, known.description),
        policies,
        id: known.id,
        ..ACLRole::default()
    }
}

async fn delete(call: Call) -> Outcome {
    let id = call.one_argument()?;
    call.client()?.delete_acl_role(id).await.doing("deleting ACL role")?;
    write_out(format!("ACL role {id} successfully deleted\n"));
    Ok(0)
}

async fn info(call: Call) -> Outcome {
    let (given, client) = (call.one_argument()?, call.client()?);
    let role = match call.args.switch(&BY_NAME) {
        true => client.acl_role_named(given).await,
        false => client.acl_role(given).await,
    };
    print(&call, &role.doing("reading ACL role")?)
}

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    let format = call.object_format()?;
    let roles = call.client()?.acl_roles(Query::new()).await.doing("listing ACL roles")?.value;
    if let Some(format) = format {
        return format.print(&roles);
    }
    write_out(match roles.as_slice() {
        [] => "No ACL roles found\n".to_string(),
        roles => layout::acl::roles(roles),
    });
    Ok(0)
}

fn print(call: &Call, role: &ACLRole) -> Outcome {
    if let Some(format) = call.object_format()? {
        return format.print(role);
    }
    write_out(layout::acl::role(role));
    Ok(0)
}

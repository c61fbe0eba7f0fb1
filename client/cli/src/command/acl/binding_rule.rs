use model::document::ACLBindingRule;
use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run};
use crate::flags::Flag;
use crate::layout;
use crate::output::write_out;

const DESCRIPTION: Flag<String> = Flag::value("description", "TEXT", "A description of the rule.");
const AUTH_METHOD: Flag<String> = Flag::value("auth-method", "NAME", "The auth method that it is for.");
const SELECTOR: Flag<String> = Flag::value(
    "selector",
    "EXPR",
    "Whom it holds for: an expression over value.NAME and list.NAME. Default: everybody.",
);
const BIND_TYPE: Flag<String> =
    Flag::value("bind-type", "TYPE", "What it gives: role, policy, or management for everything.");
const BIND_NAME: Flag<String> = Flag::value(
    "bind-name",
    "NAME",
    "The name of the role or policy. ${value.NAME} in it stands for a claim.",
);
const NO_MERGE: Flag<bool> = Flag::switch("no-merge", "Replace the rule by what is given, all but its id.");

pub(super) static CREATE: Command = Command {
    name: "acl binding-rule create",
    aliases: &[],
    arguments: "",
    summary: "Create a binding rule: what somebody gets who logs in.",
    details: "",
    flags: &[&[&DESCRIPTION, &AUTH_METHOD, &SELECTOR, &BIND_TYPE, &BIND_NAME], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(create(call))),
};

pub(super) static DELETE: Command = Command {
    name: "acl binding-rule delete",
    aliases: &[],
    arguments: "<acl_binding_rule_id>",
    summary: "Delete a binding rule.",
    details: "Tokens that it gave something to keep that until they expire.",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(delete(call))),
};

pub(super) static INFO: Command = Command {
    name: "acl binding-rule info",
    aliases: &[],
    arguments: "<acl_binding_rule_id>",
    summary: "Show a binding rule.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(info(call))),
};

pub(super) static LIST: Command = Command {
    name: "acl binding-rule list",
    aliases: &[],
    arguments: "",
    summary: "List binding rules.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

pub(super) static UPDATE: Command = Command {
    name: "acl binding-rule update",
    aliases: &[],
    arguments: "<acl_binding_rule_id>",
    summary: "Change a binding rule.",
    details: "What no flag names stays, unless -no-merge is given. Its auth method cannot change.",
    flags: &[&[&DESCRIPTION, &SELECTOR, &BIND_TYPE, &BIND_NAME, &NO_MERGE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(update(call))),
};

async fn create(call: Call) -> Outcome {
    call.no_arguments()?;
    let auth_method = call.args.value(&AUTH_METHOD).unwrap_or_default().to_string();
    let rule = ACLBindingRule { auth_method, ..given(&call) };
    for (flag, value) in [("-auth-method", &rule.auth_method), ("-bind-type", &rule.bind_type)] {
        if value.is_empty() {
            return Err(call.usage(&format!("{flag} is required")));
        }
    }
    let rule = call.client()?.apply_binding_rule(&rule).await.doing("creating ACL binding rule")?;
    print(&call, &rule)
}

async fn update(call: Call) -> Outcome {
    let id = call.one_argument()?;
    let (client, wanted) = (call.client()?, given(&call));
    let wanted = match call.args.switch(&NO_MERGE) {
        false => ACLBindingRule { id: id.to_string(), ..wanted },
        true if wanted.bind_type.is_empty() => {
            return Err(call.usage("-bind-type is required with -no-merge"));
        }
        // To the API what is empty stays as it is.
        true => {
            let known = client.binding_rule(id).await.doing("reading ACL binding rule")?;
            let is_less = (wanted.description.is_empty() && !known.description.is_empty())
                || (wanted.selector.is_empty() && !known.selector.is_empty());
            if is_less {
                return Err(call.usage(
                    "-no-merge cannot take a description or selector away: delete the rule and create another",
                ));
            }
            ACLBindingRule { id: id.to_string(), ..wanted }
        }
    };
    let rule = client.apply_binding_rule(&wanted).await.doing("updating ACL binding rule")?;
    print(&call, &rule)
}

/// The rule that the flags describe.
fn given(call: &Call) -> ACLBindingRule {
    let text = |flag| call.args.value(flag).unwrap_or_default().to_string();
    ACLBindingRule {
        description: text(&DESCRIPTION),
        selector: text(&SELECTOR),
        bind_type: text(&BIND_TYPE),
        bind_name: text(&BIND_NAME),
        ..ACLBindingRule::default()
    }
}

async fn delete(call: Call) -> Outcome {
    let id = call.one_argument()?;
    call.client()?.delete_binding_rule(id).await.doing("deleting ACL binding rule")?;
    write_out(format!("ACL binding rule {id} successfully deleted\n"));
    Ok(0)
}

async fn info(call: Call) -> Outcome {
    let id = call.one_argument()?;
    let rule = call.client()?.binding_rule(id).await.doing("reading ACL binding rule")?;
    print(&call, &rule)
}

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    let format = call.object_format()?;
    let rules = call.client()?.binding_rules(Query::new()).await.doing("listing ACL binding rules")?.value;
    if let Some(format) = format {
        return format.print(&rules);
    }
    write_out(match rules.as_slice() {
        [] => "No ACL binding rules found\n".to_string(),
        rules => layout::login::binding_rules(rules),
    });
    Ok(0)
}

fn print(call: &Call, rule: &ACLBindingRule) -> Outcome {
    if let Some(format) = call.object_format()? {
        return format.print(rule);
    }
    write_out(layout::login::binding_rule(&call.style(), rule));
    Ok(0)
}

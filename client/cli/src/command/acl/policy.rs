use model::document::{ACLPolicy, JobACL};
use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run};
use crate::flags::{Completion, Flag};
use crate::job_file;
use crate::layout;
use crate::output::write_out;

const DESCRIPTION: Flag<String> = Flag::value("description", "TEXT", "A description of the policy.");
const JOB: Flag<String> = Flag::value(
    "job",
    "ID",
    "The tasks of this job, in the namespace of the command, have the policy without a token.",
)
.completed_by(Completion::Ids("jobs"));
const GROUP: Flag<String> = Flag::value("group", "NAME", "Only the tasks of this group of the job.");
const TASK: Flag<String> = Flag::value("task", "NAME", "Only this task of the group.");

pub(super) static APPLY: Command = Command {
    name: "acl policy apply",
    aliases: &[],
    arguments: "<name> <path>",
    summary: "Create or change a policy.",
    details: "The second argument is a file with its rules, HCL or JSON, or - for standard input.",
    flags: &[&[&DESCRIPTION, &JOB, &GROUP, &TASK], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(apply(call))),
};

pub(super) static DELETE: Command = Command {
    name: "acl policy delete",
    aliases: &[],
    arguments: "<name>",
    summary: "Delete a policy.",
    details: "Tokens and roles may go on naming it: it gives them nothing.",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(delete(call))),
};

pub(super) static INFO: Command = Command {
    name: "acl policy info",
    aliases: &[],
    arguments: "<name>",
    summary: "Show a policy and its rules.",
    details: "",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(info(call))),
};

pub(super) static LIST: Command = Command {
    name: "acl policy list",
    aliases: &[],
    arguments: "",
    summary: "List policies.",
    details: "All of them with a management token, else those of the token.",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

pub(super) static OWN: Command = Command {
    name: "acl policy self",
    aliases: &[],
    arguments: "",
    summary: "List the policies of the token that the command presents.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(own(call))),
};

async fn apply(call: Call) -> Outcome {
    let (name, path) = call.two_arguments()?;
    let policy = ACLPolicy {
        name: name.to_string(),
        description: call.args.value(&DESCRIPTION).unwrap_or_default().to_string(),
        rules: job_file::read_source(path)?.text,
        job_acl: tasks(&call),
        ..ACLPolicy::default()
    };
    call.client()?.apply_acl_policy(&policy).await.doing("writing ACL policy")?;
    write_out(format!("Successfully wrote \"{name}\" ACL policy!\n"));
    Ok(0)
}

/// The tasks that have the policy by themselves. What a flag lacks beside it, the servers say.
fn tasks(call: &Call) -> Option<JobACL> {
    let [job_id, group, task] =
        [&JOB, &GROUP, &TASK].map(|flag| call.args.value(flag).unwrap_or_default().to_string());
    let namespace = if call.namespace().is_empty() { "default" } else { call.namespace() };
    let is_given = [&job_id, &group, &task].iter().any(|level| !level.is_empty());
    is_given.then(|| JobACL { namespace: namespace.to_string(), job_id, group, task })
}

async fn delete(call: Call) -> Outcome {
    let name = call.one_argument()?;
    call.client()?.delete_acl_policy(name).await.doing("deleting ACL policy")?;
    write_out(format!("Successfully deleted {name} policy!\n"));
    Ok(0)
}

async fn info(call: Call) -> Outcome {
    let name = call.one_argument()?;
    let policy = call.client()?.acl_policy(name).await.doing("fetching info on ACL policy")?;
    write_out(layout::acl::policy(&call.style(), &policy));
    Ok(0)
}

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    let format = call.object_format()?;
    let policies = call.client()?.acl_policies(Query::new()).await.doing("listing ACL policies")?.value;
    if let Some(format) = format {
        return format.print(&policies);
    }
    write_out(match policies.as_slice() {
        [] => "No policies found\n".to_string(),
        policies => layout::acl::policies(policies),
    });
    Ok(0)
}

async fn own(call: Call) -> Outcome {
    call.no_arguments()?;
    let format = call.object_format()?;
    let policies = call.client()?.own_acl_policies().await.doing("fetching own ACL policies")?;
    if let Some(format) = format {
        return format.print(&policies);
    }
    write_out(match policies.as_slice() {
        [] => "No policies found\n".to_string(),
        policies => layout::acl::own_policies(policies),
    });
    Ok(0)
}

//! Promotes, fails, pauses and resumes deployments.

use model::document::Deployment;
use sdk::Client;

use crate::call::{CLIENT_FLAGS, Call, Command, DETACH, Doing, Failure, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::output::{OutputStyle, write_out};
use crate::{eval_monitor, raw, resolve};

pub(crate) const GROUP: Flag<Vec<String>> =
    Flag::values("group", "NAME", "Promote only this group; may be given several times.");

pub(crate) static PROMOTE: Command = Command {
    name: "deployment promote",
    aliases: &[],
    arguments: "<deployment id>",
    summary: "Promote the canaries of a deployment.",
    details: "The rest of the allocations follow. Without -group all groups that have canaries are promoted.",
    flags: &[&[&DETACH, &GROUP, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(promote(call))),
};

pub(crate) static FAIL: Command = Command {
    name: "deployment fail",
    aliases: &[],
    arguments: "<deployment id>",
    summary: "Fail a deployment.",
    details: "A job with auto_revert goes back to its last stable version.",
    flags: &[&[&DETACH, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(fail(call))),
};

pub(crate) static PAUSE: Command = Command {
    name: "deployment pause",
    aliases: &[],
    arguments: "<deployment id>",
    summary: "Pause a deployment: nothing more is placed or replaced for it.",
    details: "",
    flags: &[&[&VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(pause(call))),
};

pub(crate) static RESUME: Command = Command {
    name: "deployment resume",
    aliases: &[],
    arguments: "<deployment id>",
    summary: "Resume a paused deployment.",
    details: "",
    flags: &[&[&DETACH, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(resume(call))),
};

pub(crate) static UNBLOCK: Command = Command {
    name: "deployment unblock",
    aliases: &[],
    arguments: "<deployment id>",
    summary: "Unblock a deployment that waits for those of other regions.",
    details: "Jobs in several regions are of Nomad Enterprise: a server without them says that nothing is blocked.",
    flags: &[&[&DETACH, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(unblock(call))),
};

async fn named(call: &Call) -> Result<(Client, OutputStyle, Deployment), Failure> {
    let (client, style) = (call.client()?, call.style());
    let deployment = resolve::deployment(&client, &style, call.one_argument()?).await?;
    Ok((client, style, deployment))
}

async fn promote(call: Call) -> Outcome {
    let (client, style, deployment) = named(&call).await?;
    promoted(&call, &client, &style, &deployment).await
}

pub(crate) async fn promoted(
    call: &Call,
    client: &Client,
    style: &OutputStyle,
    deployment: &Deployment,
) -> Outcome {
    let groups = call.args.values(&GROUP);
    let answer = client.promote_deployment(&deployment.id, groups).await.doing("promoting deployment")?;
    follow(call, client, style, &answer.eval_id).await
}

async fn fail(call: Call) -> Outcome {
    let (client, style, deployment) = named(&call).await?;
    let answer = client.fail_deployment(&deployment.id).await.doing("failing deployment")?;
    let reverted = answer.reverted_job_version;
    let reverted = reverted.map(|version| format!(". Auto-reverted to job version {version}"));
    write_out(format!("Deployment \"{}\" failed{}\n\n", deployment.id, reverted.unwrap_or_default()));
    follow(&call, &client, &style, &answer.eval_id).await
}

async fn pause(call: Call) -> Outcome {
    let (client, _, deployment) = named(&call).await?;
    client.pause_deployment(&deployment.id, true).await.doing("pausing deployment")?;
    write_out(format!("Deployment \"{}\" paused\n", deployment.id));
    Ok(0)
}

async fn resume(call: Call) -> Outcome {
    let (client, style, deployment) = named(&call).await?;
    let answer = client.pause_deployment(&deployment.id, false).await.doing("resuming deployment")?;
    write_out(format!("Deployment \"{}\" resumed\n", deployment.id));
    follow(&call, &client, &style, &answer.eval_id).await
}

async fn unblock(call: Call) -> Outcome {
    let (client, style, deployment) = named(&call).await?;
    let path = format!("/v1/deployment/unblock/{}", deployment.id);
    let body = serde_json::json!({"DeploymentID": deployment.id});
    let answer = raw::ask(&client, "PUT", &path, Some(&body), "unblocking deployment").await?;
    write_out(format!("Deployment \"{}\" unblocked\n", deployment.id));
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap_or_default();
    follow(&call, &client, &style, answer["EvalID"].as_str().unwrap_or_default()).await
}

/// Prints the id of the evaluation or monitors it. Not every change creates one.
pub(crate) async fn follow(call: &Call, client: &Client, style: &OutputStyle, eval: &str) -> Outcome {
    if eval.is_empty() {
        return Ok(0);
    }
    if call.args.switch(&DETACH) {
        write_out(format!("Evaluation ID: {eval}\n"));
        return Ok(0);
    }
    eval_monitor::evaluation(client, style, eval).await
}

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, JSON, Outcome, Run};
use crate::layout;
use crate::output::{json, write_out};

/// The exit code while the servers are not all of one release.
const UNFINISHED: u8 = 2;

pub(super) static CHECK: Command = Command {
    name: "operator upgrade check",
    aliases: &[],
    arguments: "",
    summary: "Show how far an upgrade of the servers has come.",
    details: "Lists the servers with their releases, says which are behind, and whether the older release can be gone back to.\n\
              The exit code is 0 when the upgrade is finished, and 2 while it is not. See docs/upgrading.md.",
    flags: &[&[&JSON], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(check(call))),
};

pub(super) static FINISH: Command = Command {
    name: "operator upgrade finish",
    aliases: &[],
    arguments: "",
    summary: "Let the cluster use what the release brought that all servers have.",
    details: "Fails while a server is of an older release. From then on no older release can follow or be gone back to.",
    flags: &[&[&JSON], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(finish(call))),
};

async fn check(call: Call) -> Outcome {
    call.no_arguments()?;
    let status = call.client()?.upgrade().await.doing("querying the releases of the servers")?;
    write_out(if call.args.switch(&JSON) { json(&status) } else { layout::operator::upgrade(&status) });
    Ok(if status.finished { 0 } else { UNFINISHED })
}

async fn finish(call: Call) -> Outcome {
    call.no_arguments()?;
    let raised = call.client()?.finish_upgrade().await.doing("finishing the upgrade")?;
    let text = match raised.raised {
        true => format!("The cluster is at epoch {} now\n", raised.epoch),
        false => format!("The cluster is at epoch {} already\n", raised.epoch),
    };
    write_out(if call.args.switch(&JSON) { json(&raised) } else { text });
    Ok(0)
}

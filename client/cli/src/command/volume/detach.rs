use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run};
use crate::flags::Flag;
use crate::output::write_out;

pub(super) static DETACH: Command = Command {
    name: "volume detach",
    aliases: &[],
    arguments: "<volume id> <node id>",
    summary: "Take a volume of a storage plugin from a node.",
    details: "What has ended is detached by itself; this is for what could not be. Allocations that run must be stopped first.",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(detach(call))),
};

const FORCE: Flag<bool> = Flag::switch("force", "Also while it is claimed: nobody detaches it then.");

pub(super) static DEREGISTER: Command = Command {
    name: "volume deregister",
    aliases: &[],
    arguments: "<volume id>",
    summary: "Forget a volume of a storage plugin, and leave what is stored.",
    details: "\"volume delete\" has the plugin delete what is stored, too.",
    flags: &[&[&FORCE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(deregister(call))),
};

async fn detach(call: Call) -> Outcome {
    let (id, node) = call.two_arguments()?;
    call.client()?.detach_csi_volume(id, node).await.doing("detaching volume")?;
    write_out(format!("Detached volume \"{id}\" from node {node}\n"));
    Ok(0)
}

async fn deregister(call: Call) -> Outcome {
    let id = call.one_argument()?;
    let forced = call.args.switch(&FORCE);
    call.client()?.deregister_csi_volume(id, forced).await.doing("deregistering volume")?;
    write_out(format!("Successfully deregistered volume \"{id}\"!\n"));
    Ok(0)
}

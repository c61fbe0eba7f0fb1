use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run};
use crate::flags::Flag;
use crate::output::write_out;

use super::snapshot::SECRET;

const TYPE: Flag<String> = Flag::value("type", "TYPE", "csi or host. Default: csi.");
const FORCE: Flag<bool> =
    Flag::switch("force", "Also if an allocation uses it, or its node does not answer or cannot remove it.");

pub(super) static COMMAND: Command = Command {
    name: "volume delete",
    aliases: &[],
    arguments: "<volume id>",
    summary: "Delete a volume and what is stored on it.",
    details: "The plugin that made it removes it. A host volume that was registered and made by somebody else stays.",
    flags: &[&[&TYPE, &FORCE, &SECRET], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(delete(call))),
};

async fn delete(call: Call) -> Outcome {
    let id = call.one_argument()?;
    let (client, secrets) = (call.client()?, call.args.values(&SECRET));
    match call.args.value(&TYPE).unwrap_or("csi") {
        "host" => client.delete_host_volume(id, call.args.switch(&FORCE)).await.doing("deleting volume")?,
        "csi" if call.args.switch(&FORCE) => {
            return Err(anyhow::anyhow!(
                "-force is for volumes of type host: \"volume deregister -force\" forgets one of type csi, and leaves what is stored"
            )
            .into());
        }
        "csi" => {
            super::snapshot::pairs("secret", secrets)?;
            client.delete_csi_volume(id, secrets).await.doing("deleting volume")?;
        }
        other => return Err(anyhow::anyhow!("invalid -type \"{other}\": expected csi or host").into()),
    }
    write_out(format!("Successfully deleted volume \"{id}\"!\n"));
    Ok(0)
}

use std::path::Path;

use migrate::{Inventory, Scope};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run};
use crate::flags::Flag;
use crate::output::{write_err, write_out};

const NO_VARIABLES: Flag<bool> = Flag::switch("no-variables", "Leave the variables out: they are secrets.");

pub(super) static NOMAD: Command = Command {
    name: "export nomad",
    aliases: &[],
    arguments: "<folder>",
    summary: "Write jobs, variables, policies and more into a folder, for a Nomad.",
    details: "The folder has to be new or empty; only its owner may read it. It gets a file for each namespace, node pool, ACL\n\
              policy, ACL role, variable and job (as job run -json takes it, beside it the source that was registered), the\n\
              scheduler's configuration, and apply.sh, which gives them to a Nomad by its command line: JOBS=none ./apply.sh\n\
              leaves the jobs out. Jobs that are stopped are written and not applied. With -namespace, what belongs to the\n\
              whole cluster is left out. The exit code is 1 when something could not be read. See docs/migrate.md.",
    flags: &[&[&NO_VARIABLES], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(nomad(call))),
};

async fn nomad(call: Call) -> Outcome {
    let folder = Path::new(call.one_argument()?);
    let client = call.client()?;
    let scope = Scope::of(call.namespace(), !call.args.switch(&NO_VARIABLES));
    let mut inventory = Inventory::read(&client, &scope).await.doing("reading the cluster")?;
    inventory.count_left_out(&client).await.doing("reading the cluster")?;
    let files = migrate::export(&inventory, folder).map_err(anyhow::Error::from)?;
    for note in &inventory.left_out {
        write_err(format!("{}: not exported: {}", note.what, note.why));
    }
    for (kind, why) in inventory.missed() {
        write_err(format!("every {}: not exported: {why}", kind.word()));
    }
    for note in &inventory.failures {
        write_err(format!("{}: not exported: {}", note.what, note.why));
    }
    let (objects, folder) = (inventory.objects.len(), folder.display());
    write_out(format!("{objects} objects in {files} files: {folder}/apply.sh gives them to a Nomad\n"));
    Ok(u8::from(inventory.missed().count() + inventory.failures.len() > 0))
}

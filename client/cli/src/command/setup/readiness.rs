//! Whether tasks can log in to Vault with identities.

use sdk::{Client, Query};
use serde::Serialize;

use crate::call::{Doing, Outcome};
use crate::object_format::ObjectFormat;
use crate::output::{Table, write_out};

/// A task with a vault block and without the identity for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Unready {
    namespace: String,
    #[serde(rename = "JobID")]
    job: String,
    task: String,
    /// The name of the identity that it lacks.
    identity: String,
}

/// The exit code when some lack one.
const UNREADY: u8 = 1;

pub(super) async fn check(client: &Client, format: Option<ObjectFormat>) -> Outcome {
    let mut found = Vec::new();
    let jobs = client.jobs(Query::new().namespace("*")).await.doing("querying jobs")?.value;
    for stub in jobs.iter().filter(|stub| !stub.stop) {
        let query = Query::new().namespace(&stub.namespace);
        let job = match client.job(&stub.id, query).await {
            Ok(answer) => answer.value,
            // It has gone meanwhile.
            Err(error) if error.status() == Some(404) => continue,
            Err(error) => return Err(error).doing("querying job"),
        };
        found.extend(jobspec::missing_vault_identities(&job).into_iter().map(|(task, identity)| Unready {
            namespace: stub.namespace.clone(),
            job: stub.id.clone(),
            task,
            identity,
        }));
    }
    let code = if found.is_empty() { 0 } else { UNREADY };
    match format {
        Some(format) => drop(format.print(&found)?),
        None => write_out(table(&found)),
    }
    Ok(code)
}

fn table(found: &[Unready]) -> String {
    if found.is_empty() {
        return "Every task with a vault block has an identity to log in to Vault with.\n".to_string();
    }
    let mut table = Table::new(["Namespace", "Job ID", "Task", "Lacks identity"]);
    for unready in found {
        let Unready { namespace, job, task, identity } = unready.clone();
        table.row([namespace, job, task, identity]);
    }
    format!(
        "Tasks without an identity to log in to Vault with:\n\n{}\nvault.default_identity in the configuration of servers gives it \
         to jobs that are registered from then on.\n",
        table.render()
    )
}

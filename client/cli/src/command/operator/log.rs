use std::path::Path;

use anyhow::{Context, bail};
use journal::store::{Damage, Directory, Repair, StoreError, repair};
use serde_json::{Value, json};

use crate::call::{Call, Command, Outcome, Run};
use crate::flags::Flag;
use crate::layout;
use crate::output::{self, write_err, write_out};

const ACCEPT_LOSS: Flag<bool> = Flag::switch("accept-loss", "Repair the log and accept the reported loss.");
const JSON: Flag<bool> = Flag::switch("json", "Print what was found as JSON.");

pub(super) static COMMAND: Command = Command {
    name: "operator log repair",
    aliases: &[],
    arguments: "<data_dir>",
    summary: "Repair the damaged log of a single server.",
    details: "Reads the whole log in <data_dir>, which is data_dir of the agent's configuration, and reports what is \
              damaged and what would be lost. Exits with 0 when nothing is damaged or everything was repaired, and \
              with 1 when -accept-loss would be needed. Damaged and removed files stay in the log's directory \
              under another name, and indexes go on above all that were lost. The server must be stopped. Do not repair a member of a cluster: it gets its data \
              from the other servers when it starts.",
    flags: &[&[&ACCEPT_LOSS, &JSON]],
    run: Run::Process(run),
};

fn run(call: Call) -> Outcome {
    let data_dir = call.one_argument()?;
    let (accept_loss, as_json) = (call.args.switch(&ACCEPT_LOSS), call.args.switch(&JSON));
    let log = server::log_dir(Path::new(data_dir));
    let mut found = match find_damage(&log, false)? {
        None => find_loss(Path::new(data_dir))?,
        damage => damage,
    };
    if let Some(damage) = found.as_ref().filter(|_| accept_loss) {
        let last = damage.lost.as_ref().map_or(damage.keeps, |lost| *lost.end());
        server::lose_up_to(Path::new(data_dir), last).context("Error repairing log: noting what is lost")?;
        found = find_damage(&log, true)?.or(found);
    }
    write_out(match as_json {
        true => output::json(&described(&log, found.as_ref(), accept_loss)),
        false => layout::log::repair(&log, found.as_ref(), accept_loss),
    });
    if found.is_none() || accept_loss {
        return Ok(0);
    }
    if !as_json {
        let again = format!("{} operator log repair -accept-loss {data_dir}", call.program);
        write_err(format!("Nothing was changed. To repair the log and accept the loss: {again}"));
    }
    Ok(1)
}

/// The damage; `None` when there is none.
fn find_damage(log: &Path, accept_loss: bool) -> anyhow::Result<Option<Repair>> {
    let shown = log.display();
    // Opening would create the directory.
    if !log.is_dir() {
        bail!("Error repairing log: there is no directory {shown}: expected a server's data_dir");
    }
    let done = Directory::open(log).and_then(|files| repair(&files, accept_loss));
    match done {
        Ok(found) => Ok(Some(found)),
        Err(StoreError::Undamaged) => Ok(None),
        Err(error @ StoreError::InUse { .. }) => {
            Err(error).context("Error repairing log: the server has to be stopped first")
        }
        Err(error) => Err(error).with_context(|| format!("Error repairing log in {shown}")),
    }
}

/// What a log that looks whole must have lost, because history has seen more.
fn find_loss(data_dir: &Path) -> anyhow::Result<Option<Repair>> {
    let lost = server::lost_tail(data_dir).context("Error repairing log: comparing it with its history")?;
    Ok(lost.map(|lost| Repair {
        damage: vec![Damage {
            file: "history".to_string(),
            offset: 0,
            why: format!("has seen batch {}, and the log ends with batch {}", lost.seen, lost.kept),
        }],
        keeps: lost.kept,
        horizon: lost.oldest,
        lost: Some(lost.kept.next()..=lost.seen),
        aside: Vec::new(),
    }))
}

fn described(log: &Path, found: Option<&Repair>, accepted: bool) -> Value {
    let damage = found.iter().flat_map(|found| &found.damage);
    let damage = damage.map(|it| json!({"File": it.file, "Offset": it.offset, "Why": it.why}));
    let lost = found.and_then(|found| found.lost.clone());
    json!({
        "Log": log.display().to_string(),
        "Damage": damage.collect::<Vec<_>>(),
        "LastKept": found.map(|found| found.keeps.0),
        "OldestReadable": found.map(|found| found.horizon.0),
        "Lost": lost.map(|lost| json!({"First": lost.start().0, "Last": lost.end().0})),
        "Repaired": found.is_some() && accepted,
        "PutAside": found.map(|found| found.aside.clone()).unwrap_or_default(),
    })
}

//! What the agent of a node has stored, while it does not run.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use node::store::{Store, StoredAlloc, StoredTask};
use serde_json::{Map, Value, json};

use crate::call::{Call, Command, Outcome, Run};
use crate::output::{json as printed, write_out};

/// The database in a node's state directory, and the lock in it.
const DATABASE: &str = "state.db";
const LOCK: &str = "lock";

pub(super) static COMMAND: Command = Command {
    name: "operator client-state",
    aliases: &[],
    arguments: "<data_dir>",
    summary: "Print what a stopped node has stored, as JSON.",
    details: "Its allocations, with the states of their tasks and the handles by which an agent finds them again; and the host volumes\n\
              that it made. Tokens and what hooks keep are left out. <data_dir> is data_dir of the agent's configuration, or the\n\
              state_dir of its client block. A copy is read, and nothing there is changed.",
    flags: &[],
    run: Run::Process(run),
};

fn run(call: Call) -> Outcome {
    let path = database(Path::new(call.one_argument()?))?;
    let reading = || format!("Error reading the node's state in {}", path.display());
    if is_in_use(&path).with_context(reading)? {
        return Err(anyhow::anyhow!("{}: the agent has to be stopped first", reading()).into());
    }
    // To open a database is to write into it.
    let copy = tempfile::tempdir().context("Error making a directory for a copy of the node's state")?;
    copy_folder(&path, copy.path()).with_context(reading)?;
    let store = Store::open(copy.path()).with_context(reading)?;
    write_out(printed(&stored(&store).with_context(reading)?));
    Ok(0)
}

/// The database of a data directory, or of a state directory.
fn database(given: &Path) -> anyhow::Result<PathBuf> {
    let places = [given.join("client").join(DATABASE), given.join(DATABASE)];
    if let Some(found) = places.iter().find(|place| place.is_dir()) {
        return Ok(found.clone());
    }
    let [first, second] = places.map(|place| place.display().to_string());
    bail!(
        "Error reading the node's state: there is no directory {first} or {second}: expected a client's data_dir"
    )
}

/// Whether an agent has it open. A lock that is tried for that is let go of at once.
fn is_in_use(database: &Path) -> io::Result<bool> {
    let lock = match File::open(database.join(LOCK)) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            fs::create_dir(&target)?;
            copy_folder(&source, &target)?;
        } else {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

fn stored(store: &Store) -> anyhow::Result<Value> {
    let registration = store.load_registration()?;
    let mut allocs = store.load()?;
    allocs.sort_by(|one, other| one.alloc.id.cmp(&other.alloc.id));
    let allocs: Vec<Value> = allocs.iter().map(|stored| alloc(store, stored)).collect::<Result<_, _>>()?;
    let volumes = store.load_volumes();
    Ok(json!({"Registered": registration.registered, "Allocs": allocs, "HostVolumes": volumes}))
}

fn alloc(store: &Store, stored: &StoredAlloc) -> anyhow::Result<Value> {
    let tasks: Map<String, Value> = stored.tasks.iter().map(|(name, of)| (name.clone(), task(of))).collect();
    Ok(json!({
        "Alloc": stored.alloc,
        "DeploymentStatus": stored.deployment,
        "Acknowledged": stored.acknowledged,
        "Tasks": tasks,
        "HooksDone": store.load_hooks_done(&stored.alloc.id)?,
    }))
}

fn task(stored: &StoredTask) -> Value {
    json!({
        "State": stored.state,
        "Handle": stored.handle,
        "Undecided": stored.undecided.as_ref().map(|exit| json!(exit)),
        "Network": stored.network,
    })
}

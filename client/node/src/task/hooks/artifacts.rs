//! Fetches the artifacts of the task before its first start.

use std::collections::{BTreeMap, BTreeSet};

use artifact::request::Confinement;
use artifact::{Mode, Owner, Request};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use model::document::{Map, TaskArtifact};
use sha2::{Digest, Sha256};

use super::identities::Reader;
use super::{StartRequest, TaskContext, TaskHook, parts};
use crate::artifacts::{fetch, remove_leftovers, scratch_below};
use crate::driver::FsIsolation;
use crate::driver::process::find_user;
use crate::hook::{HookError, HookFuture, HookState};
use crate::task::environment::Environment;
use crate::task::events;
use crate::task::parts::TaskParts;
use crate::templates::sandbox::Sandbox;

const NAME: &str = "artifacts";

/// How many artifacts of a task are fetched at the same time.
const AT_ONCE: usize = 3;

/// Where an artifact goes that has no destination.
const DESTINATION: &str = "local/";

#[derive(Debug)]
pub struct Artifacts;

impl TaskHook for Artifacts {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Remembers which blocks are done, so that neither a restart of the task nor the next agent fetches them again.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        state: &'a mut HookState,
    ) -> HookFuture<'a> {
        Box::pin(async move {
            let alloc = start.alloc.clone();
            let parts = parts(&alloc, task, NAME)?;
            let mut seen = BTreeSet::new();
            let blocks = parts.task.artifacts.iter().map(|block| (hash(block), block));
            let missing: Vec<_> = blocks
                .filter(|(hash, _)| !state.values.contains_key(hash) && seen.insert(hash.clone()))
                .collect();
            if missing.is_empty() {
                return Ok(());
            }
            task.tasks.add_event(&task.name, events::downloading_artifacts());
            remove_leftovers(&start.dir.tmp);
            let start = &*start;
            let mut fetches: Vec<Fetching<'_>> = Vec::new();
            for (hash, block) in missing {
                let fetching = fetch_one(task, parts, start, block);
                fetches.push(Box::pin(async move { (hash, block, fetching.await) }));
            }
            let mut results = stream::iter(fetches).buffer_unordered(AT_ONCE);
            while let Some((hash, block, result)) = results.next().await {
                match result {
                    Ok(()) => drop(state.values.insert(hash, "done".to_string())),
                    Err(failure) => return Err(failure.report(task, block)),
                }
            }
            Ok(())
        })
    }
}

/// A block with its hash, and how it went.
type Fetching<'a> = BoxFuture<'a, (String, &'a TaskArtifact, Result<(), Failure>)>;

/// Why there is no artifact.
#[derive(Debug, PartialEq, Eq)]
struct Failure {
    why: String,
    recoverable: bool,
}

impl Failure {
    fn fatal(why: impl Into<String>) -> Failure {
        Failure { why: why.into(), recoverable: false }
    }

    /// The address is shown as the job has it: what its variables stand for may be secret.
    fn report(self, task: &TaskContext, block: &TaskArtifact) -> HookError {
        let source = block.getter_source.as_deref().unwrap_or_default();
        let source = source.split('?').next().unwrap_or_default();
        let message = format!("failed to download artifact \"{source}\": {}", self.why);
        task.tasks.add_event(&task.name, events::failed_artifact_download(&message));
        let error = match self.recoverable {
            true => HookError::recoverable(NAME, message),
            false => HookError::fatal(NAME, message),
        };
        HookError { reported: true, ..error }
    }
}

fn hash(block: &TaskArtifact) -> String {
    let text = serde_json::to_vec(block).expect("an artifact block is plain data");
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn fetch_one(
    task: &TaskContext,
    parts: TaskParts<'_>,
    start: &StartRequest,
    block: &TaskArtifact,
) -> Result<(), Failure> {
    let settings = &task.context.settings;
    let isolation = task.context.drivers.capabilities(&parts.task.driver).map(|can| can.fs_isolation);
    let isolation = isolation.unwrap_or(FsIsolation::None);
    let sandbox = Sandbox::new(&task.alloc_dir, &start.dir, isolation, false);
    let owner = match block.chown {
        true => owner(task, parts, start).map_err(Failure::fatal)?,
        false => None,
    };
    let request = Request {
        scratch: scratch_below(&start.dir.tmp),
        writable: vec![start.dir.root.clone(), task.alloc_dir.shared()],
        owner,
        limits: settings.artifacts.limits.clone(),
        ..request(block, &start.environment, &sandbox).map_err(Failure::fatal)?
    };
    let answer = fetch(&settings.executor_program, &request, &settings.artifacts).await;
    let answer = answer.map_err(|why| Failure { why, recoverable: true })?;
    if answer.confinement == Confinement::Missing {
        let alloc = &start.alloc.id;
        tracing::warn!(
            alloc,
            task = task.name,
            "the kernel has no Landlock: an artifact was fetched without it"
        );
    }
    match answer.error {
        None => Ok(()),
        Some(why) => Err(Failure { why, recoverable: answer.recoverable }),
    }
}

/// What the block says, its variables replaced.
fn request(block: &TaskArtifact, environment: &Environment, sandbox: &Sandbox) -> Result<Request, String> {
    let text = |text: &Option<String>| environment.replace(text.as_deref().unwrap_or_default());
    let all = |map: &Map<String, String>| -> BTreeMap<String, String> {
        map.iter().map(|(name, value)| (environment.replace(name), environment.replace(value))).collect()
    };
    let mode = text(&block.getter_mode);
    let destination = Some(text(&block.relative_dest)).filter(|text| !text.is_empty());
    let location = sandbox.locate(destination.as_deref().unwrap_or(DESTINATION))?;
    Ok(Request {
        source: text(&block.getter_source),
        options: all(&block.getter_options),
        headers: all(&block.getter_headers),
        mode: Mode::parse(&mode).ok_or_else(|| format!("mode \"{mode}\" is none of any, file and dir"))?,
        insecure: block.getter_insecure == Some(true),
        root: location.root().to_path_buf(),
        destination: location.inside().to_path_buf(),
        scratch: Default::default(),
        writable: Vec::new(),
        owner: None,
        limits: artifact::Limits::usual(),
    })
}

/// Who the task runs as; `None` for one that is the agent's user, or whom only its image knows.
fn owner(task: &TaskContext, parts: TaskParts<'_>, start: &StartRequest) -> Result<Option<Owner>, String> {
    let user = start.environment.replace(&parts.task.user);
    if !user.is_empty() {
        // One that this host does not know is an error here, and not somebody else.
        find_user(&user, "", "", &mut BTreeMap::new()).map_err(|error| format!("chown: {error}"))?;
    }
    let owner = Reader::of(task, parts.task, start).owner();
    Ok(owner.map(|(uid, gid)| Owner { uid, gid }))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::layout::AllocDir;

    fn block(value: Value) -> TaskArtifact {
        serde_json::from_value(value).unwrap()
    }

    fn request_of(value: Value, isolation: FsIsolation) -> Result<Request, String> {
        let alloc = AllocDir::new(Path::new("/data/alloc"), "5d16e7fe-8a2e-4b44-9c0a-3c7ab13b9f01").unwrap();
        let mut environment = Environment::default();
        for (name, value) in [("VERSION", "1.2"), ("NOMAD_TASK_DIR", "/local"), ("TOKEN", "t")] {
            environment.variables.insert(name.to_string(), value.to_string());
        }
        request(&block(value), &environment, &Sandbox::new(&alloc, &alloc.task("web"), isolation, false))
    }

    #[test]
    fn variables_are_replaced_everywhere() {
        let value = json!({
            "GetterSource": "https://h/${VERSION}.tgz", "RelativeDest": "local/${VERSION}", "GetterMode": "dir",
            "GetterOptions": {"checksum": "md5:${VERSION}"}, "GetterHeaders": {"X-Token": "${TOKEN}"}
        });
        let request = request_of(value, FsIsolation::None).unwrap();
        assert_eq!(request.source, "https://h/1.2.tgz");
        assert_eq!(request.destination, Path::new("local/1.2"));
        assert_eq!(request.options["checksum"], "md5:1.2");
        assert_eq!(request.headers["X-Token"], "t");
        assert_eq!(request.mode, Mode::Dir);
        assert!(request.root.ends_with("web"));
    }

    #[test]
    fn destinations_stay_in_the_directories_of_the_task() {
        let at = |destination: &str, isolation| {
            request_of(json!({"GetterSource": "x", "RelativeDest": destination}), isolation)
        };
        assert_eq!(at("", FsIsolation::None).unwrap().destination, Path::new("local"));
        assert_eq!(at("${NOMAD_TASK_DIR}/x", FsIsolation::Image).unwrap().destination, Path::new("local/x"));
        assert!(at("../alloc/data", FsIsolation::None).unwrap().root.ends_with("alloc"));
        for destination in ["../other/local", "/etc", "../../x"] {
            let error = at(destination, FsIsolation::None).unwrap_err();
            assert!(error.contains("escapes"), "{error}");
        }
        let error = request_of(json!({"GetterSource": "x", "GetterMode": "both"}), FsIsolation::None);
        assert_eq!(error.unwrap_err(), "mode \"both\" is none of any, file and dir");
    }

    #[test]
    fn every_part_of_a_block_counts_for_what_is_done() {
        let first = block(json!({"GetterSource": "a"}));
        assert_eq!(hash(&first), hash(&first.clone()));
        for other in [json!({"GetterSource": "b"}), json!({"GetterSource": "a", "Chown": true})] {
            assert_ne!(hash(&first), hash(&block(other)));
        }
    }
}

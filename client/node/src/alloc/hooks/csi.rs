//! Volumes of storage plugins: claimed, staged and published before the first task, and given back after the last.
//!
//! What was begun is stored before it is begun. After a kill of the agent everything is asked for again, which changes nothing
//! where it was done; of an allocation whose tasks run nothing is asked, unless the host has been restarted meanwhile.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use executor::process::boot_id;
use model::document::{Allocation, CSIMountOptions, TaskGroup, VolumeRequest};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use wire::messages::{
    CsiCapacityRange, CsiVolumeClaim, CsiVolumeClaimRequest, CsiVolumeExpandedRequest,
    CsiVolumeUnpublishRequest, NODE_DETACHED, WriteRequest,
};

use super::{AllocContext, AllocHook, group_of};
use crate::alloc::status;
use crate::csi::paths::Usage;
use crate::csi::volume::{self, Claimed};
use crate::hook::{HookError, HookFuture, HookState};
use crate::server::ServerError;
use crate::task::events;
use crate::task::lifecycle::is_dead;

const NAME: &str = "csi_hook";

/// The key of the hook's state under which its volumes stand.
const VOLUMES: &str = "volumes";

/// How long an agent in development tries to give a volume back.
const DEV_WITHIN: Duration = Duration::from_secs(3);

/// Holds what was claimed, as it is stored: an agent in development stores nothing.
#[derive(Debug, Default)]
pub struct Csi(Mutex<Option<Vec<Held>>>);

impl Csi {
    fn held(&self, state: &HookState) -> Vec<Held> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        known.unwrap_or_else(|| load(state))
    }

    fn keep(&self, alloc: &AllocContext, state: &mut HookState, held: &[Held]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(held.to_vec());
        store(alloc, state, held);
    }
}

/// A volume that was claimed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
struct Held {
    /// What the group calls it.
    name: String,
    usage: Usage,
    published: bool,
    /// The run of the host's kernel in which it was.
    boot_id: String,
}

impl Default for Held {
    fn default() -> Held {
        let usage = Usage {
            plugin_id: String::new(),
            namespace: String::new(),
            volume_id: String::new(),
            external_id: String::new(),
            alloc_id: String::new(),
            read_only: false,
            access_mode: String::new(),
            attachment_mode: String::new(),
        };
        Held { name: String::new(), usage, published: false, boot_id: String::new() }
    }
}

fn load(state: &HookState) -> Vec<Held> {
    let stored = state.values.get(VOLUMES);
    stored.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn store(alloc: &AllocContext, state: &mut HookState, held: &[Held]) {
    match serde_json::to_string(held) {
        Ok(text) if !held.is_empty() => drop(state.values.insert(VOLUMES.to_string(), text)),
        _ => drop(state.values.remove(VOLUMES)),
    }
    alloc.context.store.put_hook(&alloc.id, None, NAME, state);
}

impl AllocHook for Csi {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Never done: after a restart of the agent it is looked whether everything is there.
    fn prerun<'a>(&'a self, alloc: &'a AllocContext, state: &'a mut HookState) -> HookFuture<'a> {
        Box::pin(async move {
            let mut versions = alloc.versions.clone();
            tokio::select! {
                done = self.set_up(alloc, state) => done.map_err(|error| HookError::fatal(NAME, error)),
                // What was begun is given back by the last step.
                _ = versions.wait_for(|newest| status::is_stopped(&newest.desired_status)) => Ok(()),
            }
        })
    }

    fn postrun<'a>(&'a self, alloc: &'a AllocContext) -> HookFuture<'a> {
        Box::pin(self.give_back(alloc))
    }

    fn destroy<'a>(&'a self, alloc: &'a AllocContext) -> HookFuture<'a> {
        Box::pin(self.give_back(alloc))
    }
}

impl Csi {
    async fn set_up(&self, alloc: &AllocContext, state: &mut HookState) -> Result<(), String> {
        let newest = alloc.alloc();
        let Some(group) = group_of(&newest) else { return Ok(()) };
        let states = alloc.tasks.states();
        if !states.is_empty() && states.values().all(is_dead) {
            // An earlier agent saw it end.
            return Ok(());
        }
        let boot_id = boot_id();
        let mut held = self.held(state);
        for (name, request) in csi_requests(group) {
            let is_there = |own: &Held| {
                own.name == *name
                    && own.published
                    && own.boot_id == boot_id
                    && own.usage.is_of(request)
                    && own.usage.target(&alloc.context.settings.state_dir).symlink_metadata().is_ok()
            };
            if let Some(own) = held.iter().find(|own| is_there(own)) {
                alloc.context.csi.publish(&alloc.id, name, own.usage.clone());
                continue;
            }
            let claimed = claim(alloc, &newest, request).await?;
            let volume = &claimed.volume;
            let usage = Usage {
                plugin_id: volume.plugin_id.clone(),
                namespace: newest.namespace.clone(),
                volume_id: volume.id.clone(),
                external_id: or(&volume.external_id, &volume.id),
                alloc_id: alloc.id.clone(),
                read_only: request.read_only,
                access_mode: request.access_mode.clone(),
                attachment_mode: request.attachment_mode.clone(),
            };
            held.retain(|own| own.name != *name);
            held.push(Held {
                name: name.clone(),
                usage: usage.clone(),
                published: false,
                boot_id: boot_id.clone(),
            });
            self.keep(alloc, state, &held);
            let options = mount_options(request, volume.mount_options.as_ref());
            volume::mount(&alloc.context, &usage, &options, &claimed).await?;
            if let Some(to) = claimed.expansion {
                expand(alloc, &usage, &options, &claimed, to).await;
            }
            if let Some(own) = held.last_mut() {
                own.published = true;
            }
            self.keep(alloc, state, &held);
            alloc.context.csi.publish(&alloc.id, name, usage);
        }
        Ok(())
    }

    /// What cannot be given back now stays stored, and the servers ask for it.
    async fn give_back(&self, alloc: &AllocContext) -> Result<(), HookError> {
        alloc.context.csi.forget_published(&alloc.id);
        let mut state = alloc.context.store.load_hook(&alloc.id, None, NAME);
        let held = self.held(&state);
        if held.is_empty() {
            return Ok(());
        }
        let mut left: Vec<Held> = Vec::new();
        let mut failed = None;
        for own in held {
            if let Err(error) = return_one(alloc, &own).await {
                failed = Some(error);
                left.push(own);
            }
        }
        self.keep(alloc, &mut state, &left);
        match failed {
            Some(error) => Err(HookError::fatal(NAME, error)),
            None => Ok(()),
        }
    }
}

fn csi_requests(group: &TaskGroup) -> impl Iterator<Item = (&String, &VolumeRequest)> {
    group.volumes.iter().filter(|(_, request)| request.kind == "csi")
}

/// Those of the job win over those of the volume, one by one.
fn mount_options(request: &VolumeRequest, volume: Option<&CSIMountOptions>) -> CSIMountOptions {
    let (own, known) =
        (request.mount_options.clone().unwrap_or_default(), volume.cloned().unwrap_or_default());
    CSIMountOptions {
        fs_type: or(&own.fs_type, &known.fs_type),
        mount_flags: if own.mount_flags.is_empty() { known.mount_flags } else { own.mount_flags },
    }
}

fn or(text: &str, other: &str) -> String {
    if text.is_empty() { other } else { text }.to_string()
}

/// The volume's id: of the allocation alone, if the group asks for that.
fn source(request: &VolumeRequest, alloc: &Allocation) -> String {
    let index = alloc.name.rsplit_once('[').map(|(_, rest)| rest.trim_end_matches(']')).unwrap_or_default();
    if request.per_alloc { format!("{}[{index}]", request.source) } else { request.source.clone() }
}

/// Asks until the servers give it, or say that they never will.
async fn claim(
    alloc: &AllocContext,
    newest: &Allocation,
    request: &VolumeRequest,
) -> Result<Claimed, String> {
    let settings = alloc.context.settings.csi;
    let servers = alloc.context.servers.get().ok_or("no servers are known")?;
    let id = source(request, newest);
    let asked = CsiVolumeClaimRequest {
        volume_id: id.clone(),
        allocation_id: alloc.id.clone(),
        node_id: newest.node_id.clone(),
        claim: i64::from(!request.read_only),
        access_mode: request.access_mode.clone(),
        attachment_mode: request.attachment_mode.clone(),
        write: WriteRequest { namespace: newest.namespace.clone(), ..WriteRequest::default() },
        ..CsiVolumeClaimRequest::default()
    };
    let (began, mut pause, mut said) = (Instant::now(), settings.claim_pause, String::new());
    loop {
        let error = match servers.claim_volume(asked.clone()).await {
            Ok(answer) => {
                let volume = answer.volume.ok_or_else(|| format!("volume {id}: the servers sent none"))?;
                let (publish_context, expansion) = (answer.publish_context.0, answer.expansion);
                return Ok(Claimed { volume, publish_context, expansion });
            }
            Err(error) => error,
        };
        if !may_pass(&error) || began.elapsed() > settings.claim_within {
            return Err(format!("volume {id} could not be claimed: {error}"));
        }
        let text = error.to_string();
        if text != said {
            say(alloc, &format!("waiting for volume {id}: {text}"));
            said = text;
        }
        sleep(pause).await;
        pause = (pause * 2).min(settings.claim_pause_max);
    }
}

fn say(alloc: &AllocContext, text: &str) {
    for task in alloc.roles.keys() {
        alloc.tasks.add_event(task, events::hook_message(text));
    }
}

/// Whatever comes of it, the volume is mounted, and its tasks run. The servers keep in mind what was not done, and the next one to
/// mount the volume is asked for it.
async fn expand(
    alloc: &AllocContext,
    usage: &Usage,
    options: &CSIMountOptions,
    claimed: &Claimed,
    to: CsiCapacityRange,
) {
    let id = &usage.volume_id;
    match volume::expand_mounted(&alloc.context, usage, options, claimed, to).await {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => {
            say(
                alloc,
                &format!("volume {id} is mounted, but what is on it is not as large as the volume: {error}"),
            );
            return;
        }
    }
    let Some(servers) = alloc.context.servers.get() else { return };
    let request = CsiVolumeExpandedRequest {
        volume_id: id.clone(),
        node_id: alloc.context.node().id.clone(),
        required_bytes: to.required_bytes,
        write: WriteRequest { namespace: usage.namespace.clone(), ..WriteRequest::default() },
    };
    if let Err(error) = servers.volume_expanded(request).await {
        tracing::warn!(volume = id, %error, "the servers do not know yet that a volume is expanded");
    }
}

/// Nomad's nodes know it by the same words.
fn may_pass(error: &ServerError) -> bool {
    match error {
        ServerError::NoLeader | ServerError::Unreachable(_) | ServerError::NodeUnknown(_) => true,
        ServerError::Denied(_) => false,
        ServerError::Refused(text) => {
            // Others have it; its controller is not there; the servers do not know our own plugin yet.
            text.contains("max claims reached")
                || text.contains("controller")
                || text.contains("that the node has reported")
        }
    }
}

async fn return_one(alloc: &AllocContext, held: &Held) -> Result<(), String> {
    let settings = alloc.context.settings.csi;
    let usage = &held.usage;
    // In development plugins end with everything else, and nobody is left who could unmount.
    let within =
        if alloc.context.settings.dev { settings.undo_within.min(DEV_WITHIN) } else { settings.undo_within };
    let deadline = Instant::now() + within;
    let left = || deadline.saturating_duration_since(Instant::now());
    again(left, settings.claim_pause, || volume::unmount(&alloc.context, usage, left())).await?;
    let Some(servers) = alloc.context.servers.get() else { return Err("no servers are known".to_string()) };
    let claim = CsiVolumeClaim {
        allocation_id: alloc.id.clone(),
        node_id: alloc.context.node().id.clone(),
        mode: i64::from(!usage.read_only),
        access_mode: usage.access_mode.clone(),
        attachment_mode: usage.attachment_mode.clone(),
        state: NODE_DETACHED,
        ..CsiVolumeClaim::default()
    };
    let request = CsiVolumeUnpublishRequest {
        volume_id: usage.volume_id.clone(),
        claim: Some(claim),
        write: WriteRequest { namespace: usage.namespace.clone(), ..WriteRequest::default() },
    };
    let told =
        || async { servers.unpublish_volume(request.clone()).await.map_err(|error| error.to_string()) };
    again(left, settings.claim_pause, told).await
}

/// Tries until time is up, at least once.
async fn again<F: Future<Output = Result<(), String>>>(
    left: impl Fn() -> Duration,
    pause: Duration,
    mut attempt: impl FnMut() -> F,
) -> Result<(), String> {
    loop {
        let Err(error) = attempt().await else { return Ok(()) };
        if left() <= pause {
            return Err(error);
        }
        sleep(pause).await;
    }
}

//! The network that the task starts in, and the files by which it finds names there.

use model::document::{DNSConfig, TaskGroup};

use super::{StartRequest, TaskContext, TaskHook, parts};
use crate::driver::FsIsolation;
use crate::hook::{HookError, HookFuture, HookState, ready};
use crate::network::{Network, hosts};

#[derive(Debug)]
pub struct NetworkFiles;

impl TaskHook for NetworkFiles {
    fn name(&self) -> &'static str {
        "network"
    }

    /// Never done: a start after a reboot of the host is in another network.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        _: &'a mut HookState,
    ) -> HookFuture<'a> {
        ready(prepare(task, start).map_err(|error| HookError::fatal(self.name(), error)))
    }
}

fn prepare(task: &TaskContext, start: &mut StartRequest) -> Result<(), String> {
    let alloc = start.alloc.clone();
    let parts = parts(&alloc, task, "network").map_err(|error| error.message)?;
    let network = task.context.networks.find(&alloc.id);
    let own_files = task
        .context
        .drivers
        .capabilities(&parts.task.driver)
        .is_some_and(|can| can.fs_isolation != FsIsolation::None);
    if own_files {
        names(start, parts.group, network.as_ref())?;
    }
    start.network_namespace = network.map(|network| network.namespace);
    Ok(())
}

/// For tasks that have files of their own. Those of a namespace do not see what the host resolves names with at its
/// loopback.
fn names(start: &mut StartRequest, group: &TaskGroup, network: Option<&Network>) -> Result<(), String> {
    let of_job: Option<DNSConfig> = group.networks.first().and_then(|network| network.dns.clone());
    let wanted = of_job.or_else(|| network.and_then(|network| network.status.dns.clone()));
    let write = |name: &str, text: &str| {
        let path = start.dir.root.join(name);
        hosts::write(&path, text).map_err(|error| format!("{name}: {error}"))?;
        Ok::<_, String>(Some(path))
    };
    if wanted.is_some() || network.is_some() {
        let text = hosts::resolv_conf(wanted.as_ref(), &hosts::host_resolv_conf());
        start.resolv_conf = write("resolv.conf", &text)?;
    }
    if let Some(network) = network {
        let given = group.networks.first().map(|network| network.hostname.as_str()).unwrap_or_default();
        let hostname = start.environment.replace(given);
        let hostname = if hostname.is_empty() { short(&start.alloc.id) } else { hostname };
        start.hosts_file = write("hosts", &hosts::hosts(&network.status.address, &hostname))?;
    }
    Ok(())
}

/// The name of a host that its job gives none.
pub fn short(alloc_id: &str) -> String {
    alloc_id.chars().filter(|c| *c != '-').take(12).collect()
}

use std::collections::BTreeSet;

use model::document::{
    Duration, Job, LogConfig, Resources, Secret, Task, TaskArtifact, TaskGroup, Template, VolumeMount,
    WorkloadIdentity,
};

use super::report::Report;
use super::{constraint, network, policy, service};

const MEMORY_MIN_MIB: i64 = 10;

/// Most that may be asked for, in MHz, cores or MiB (2 PiB): sums over the tasks of a job stay far from overflow.
pub(super) const RESOURCE_MAX: i64 = i32::MAX as i64;

/// Longest name of an identity or a secret, in bytes.
const NAME_MAX: usize = 128;

pub(super) fn check(report: &mut Report, job: &Job, group: &TaskGroup, task: &Task) {
    name(report, task);
    times(report, job, group, task);
    report.each("Constraints", &task.constraints, constraint::check_in_task);
    report.each("Affinities", &task.affinities, constraint::check_affinity);
    if super::is_system(job) && !task.affinities.is_empty() {
        report.error("Affinities", "system jobs may not have affinities");
    }
    if let Some(restart) = &task.restart_policy {
        report.within("RestartPolicy", "restart", |report| policy::restart(report, restart));
    }
    if let Some(given) = &task.resources {
        report.within("Resources", "resources", |report| resources(report, given));
    }
    if let Some(lifecycle) = &task.lifecycle
        && !["prestart", "poststart", "poststop"].contains(&lifecycle.hook.as_str())
    {
        report.error("Lifecycle.Hook", "the hook of a lifecycle is prestart, poststart or poststop");
    }
    if let Some(given) = &task.log_config {
        logs(report, group, given);
    }
    service::check_all(report, &task.services, Some(&task.name));
    files(report, task);
    templates(report, &task.templates);
    mounts(report, group, &task.volume_mounts);
    credentials(report, task);
    extras(report, task);
}

fn name(report: &mut Report, task: &Task) {
    match task.name.as_str() {
        "" => report.error("Name", "the task has no name"),
        "alloc" => report.error("Name", "\"alloc\" is the shared directory; a task needs another name"),
        // The task's directory bears its name.
        "." | ".." => report.error("Name", "the name of a task must not be . or .."),
        name if name.contains(['/', '\\', '\0']) => {
            report.error("Name", "the name of a task must not contain slashes or a null character");
        }
        _ => {}
    }
    if task.driver.is_empty() {
        report.error("Driver", "the task has no driver");
    }
}

fn times(report: &mut Report, job: &Job, group: &TaskGroup, task: &Task) {
    let kill = task.kill_timeout.unwrap_or_default();
    if kill < Duration::default() {
        report.error("KillTimeout", "kill_timeout is negative");
    }
    let deadline = group.update.as_ref().and_then(|update| update.progress_deadline).unwrap_or_default();
    let deploys = matches!(job.kind.as_deref(), None | Some("service"));
    if deploys && deadline > Duration::default() && kill > deadline {
        report
            .error("KillTimeout", "kill_timeout is longer than the progress_deadline of the group's update");
    }
    if task.shutdown_delay < Duration::default() {
        report.error("ShutdownDelay", "shutdown_delay is negative");
    }
}

fn resources(report: &mut Report, given: &Resources) {
    let (cpu, cores) = (given.cpu.unwrap_or(0), given.cores.unwrap_or(0));
    if cpu < 0 || cores < 0 {
        report.error("CPU", "cpu and cores must not be negative");
    }
    if cpu > 0 && cores > 0 {
        report.error("Cores", "give cpu or cores, not both");
    }
    if given.cpu == Some(0) && cores == 0 {
        report.error("CPU", "a task needs at least 1 MHz of cpu");
    }
    let memory = given.memory_mb.unwrap_or(MEMORY_MIN_MIB);
    if memory < MEMORY_MIN_MIB {
        report.error("MemoryMB", format!("{memory} MB of memory; at least {MEMORY_MIN_MIB} are needed"));
    }
    if let Some(most) = given.memory_max_mb.filter(|most| *most > 0 && *most < memory || *most < -1) {
        report.error("MemoryMaxMB", format!("memory_max {most} is less than memory {memory}"));
    }
    let most = [("CPU", given.cpu), ("Cores", given.cores), ("MemoryMB", given.memory_mb)];
    for (field, asked) in most.into_iter().chain([("MemoryMaxMB", given.memory_max_mb)]) {
        if let Some(asked) = asked.filter(|asked| *asked > RESOURCE_MAX) {
            report.error(field, format!("{asked} is more than the {RESOURCE_MAX} that may be asked for"));
        }
    }
    if given.disk_mb.unwrap_or(0) > 0 {
        report.error("DiskMB", "disk is given for the group, as size in ephemeral_disk");
    }
    if given.iops.unwrap_or(0) > 0 {
        report.warn("iops is obsolete and has no effect");
    }
    network::check(report, &given.networks);
    for (at, device) in given.devices.iter().enumerate() {
        if device.name.is_empty() || device.count == Some(0) {
            report.error(&format!("Devices[{at}]"), "a device needs a name and a count of at least 1");
        }
        let field = format!("Devices[{at}].Constraints");
        report.each(&field, &device.constraints, constraint::check_in_task);
    }
    if let Some(numa) = &given.numa {
        report.one_of("NUMA.Affinity", &numa.affinity, &["none", "prefer", "require"]);
        let unknown = |name: &&String| given.devices.iter().all(|device| device.name != **name);
        if let Some(name) = numa.devices.iter().find(unknown) {
            report.error("NUMA.Devices", format!("the task asks for no device \"{name}\""));
        }
    }
}

fn logs(report: &mut Report, group: &TaskGroup, logs: &LogConfig) {
    let (files, size) = (logs.max_files.unwrap_or(1), logs.max_file_size_mb.unwrap_or(1));
    if files < 1 || size < 1 {
        return report.error("LogConfig", "max_files and max_file_size are at least 1");
    }
    let disk = group.ephemeral_disk.as_ref().and_then(|disk| disk.size_mb);
    if let Some(disk) = disk.filter(|disk| files.saturating_mul(size) >= *disk) {
        let message =
            format!("{files} log files of {size} MB do not fit in the {disk} MB of the group's disk");
        report.error("LogConfig", message);
    }
}

fn files(report: &mut Report, task: &Task) {
    for (at, artifact) in task.artifacts.iter().enumerate() {
        report.within(&format!("Artifacts[{at}]"), "artifact", |report| self::artifact(report, artifact));
    }
    if let Some(payload) = &task.dispatch_payload {
        if payload.file.is_empty() {
            report.error("DispatchPayload.File", "dispatch_payload has no file");
        } else if escapes(&format!("local/{}", payload.file)) {
            report.error("DispatchPayload.File", "the file lies outside of the task directory");
        }
    }
}

fn artifact(report: &mut Report, artifact: &TaskArtifact) {
    if artifact.getter_source.as_deref().is_none_or(str::is_empty) {
        report.error("GetterSource", "the artifact has no source");
    }
    report.one_of("GetterMode", artifact.getter_mode.as_deref().unwrap_or(""), &["any", "file", "dir"]);
    // What a node fills in cannot be judged here.
    let checksum = artifact.getter_options.get("checksum").filter(|checksum| !checksum.contains("${"));
    if let Some(checksum) = checksum.filter(|checksum| !is_checksum(checksum)) {
        let message =
            format!("\"{checksum}\" is not a checksum: <type>:<hex>, of type md5, sha1, sha256 or sha512");
        report.error("GetterOptions[checksum]", message);
    }
    if escapes(artifact.relative_dest.as_deref().unwrap_or("")) {
        report.error("RelativeDest", "the destination lies outside of the allocation directory");
    }
}

/// A digest with its kind, or `file:` and the address of a list of digests.
fn is_checksum(text: &str) -> bool {
    let Some((kind, value)) = text.trim().split_once(':') else { return false };
    let digits = match kind {
        "md5" => 32,
        "sha1" => 40,
        "sha256" => 64,
        "sha512" => 128,
        "file" => return !value.is_empty(),
        _ => return false,
    };
    value.len() == digits && value.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// True when a path, seen from the task directory, leaves the allocation directory above it.
fn escapes(path: &str) -> bool {
    let mut depth = 1_i64;
    for part in path.split('/') {
        depth += match part {
            "" | "." => 0,
            ".." => -1,
            _ => 1,
        };
        if depth < 0 {
            return true;
        }
    }
    false
}

fn templates(report: &mut Report, templates: &[Template]) {
    let mut seen = BTreeSet::new();
    for (at, template) in templates.iter().enumerate() {
        report.within(&format!("Templates[{at}]"), "template", |report| {
            self::template(report, template);
            let destination = template.dest_path.as_deref().unwrap_or("");
            if !destination.is_empty() && !seen.insert(destination) {
                report.error("DestPath", format!("a second template for \"{destination}\""));
            }
        });
    }
}

fn template(report: &mut Report, template: &Template) {
    let empty = |text: &Option<String>| text.as_deref().is_none_or(str::is_empty);
    if empty(&template.source_path) && empty(&template.embedded_tmpl) {
        report.error("SourcePath", "the template has neither source nor data");
    }
    if empty(&template.dest_path) {
        report.error("DestPath", "the template has no destination");
    } else if escapes(template.dest_path.as_deref().unwrap_or("")) {
        report.error("DestPath", "the destination lies outside of the allocation directory");
    }
    let mode = template.change_mode.as_deref().unwrap_or("");
    report.one_of("ChangeMode", mode, &["noop", "restart", "signal", "script"]);
    if mode == "signal" && template.change_signal.as_deref() == Some("") {
        report.error("ChangeSignal", "change_mode = \"signal\" needs change_signal");
    }
    if mode == "signal" && template.envvars == Some(true) {
        report.error("ChangeMode", "env = true cannot be renewed by a signal");
    }
    let command = template.change_script.as_ref().and_then(|script| script.command.as_deref());
    if mode == "script" && command.is_none_or(str::is_empty) {
        report.error("ChangeScript", "change_mode = \"script\" needs change_script with a command");
    }
    let octal = |perms: &String| u32::from_str_radix(perms, 8).is_ok();
    if template.perms.as_ref().is_some_and(|perms| !perms.is_empty() && !octal(perms)) {
        report.error("Perms", "perms is an octal number such as 0644");
    }
    if let Some(wait) = &template.wait
        && let (Some(least), Some(most)) = (wait.min, wait.max)
        && least > most
    {
        report.error("Wait", "wait min is longer than max");
    }
}

fn mounts(report: &mut Report, group: &TaskGroup, mounts: &[VolumeMount]) {
    for (at, mount) in mounts.iter().enumerate() {
        report.within(&format!("VolumeMounts[{at}]"), "volume_mount", |report| {
            let volume = mount.volume.as_deref().unwrap_or("");
            if !group.volumes.contains_key(volume) {
                report.error("Volume", format!("the group has no volume \"{volume}\""));
            }
            if mount.destination.as_deref().is_none_or(str::is_empty) {
                report.error("Destination", "the volume_mount has no destination");
            }
            let known = ["private", "host-to-task", "bidirectional"];
            report.one_of("PropagationMode", mount.propagation_mode.as_deref().unwrap_or(""), &known);
            report.one_of("SELinuxLabel", mount.se_linux_label.as_deref().unwrap_or(""), &["Z", "z"]);
        });
    }
}

fn credentials(report: &mut Report, task: &Task) {
    if let Some(vault) = &task.vault {
        let mode = vault.change_mode.as_deref().unwrap_or("");
        report.one_of("Vault.ChangeMode", mode, &["noop", "restart", "signal"]);
        if mode == "signal" && vault.change_signal.as_deref() == Some("") {
            report.error("Vault.ChangeSignal", "change_mode = \"signal\" needs change_signal");
        }
    }
    let mut seen = BTreeSet::new();
    for (at, identity) in task.identities.iter().enumerate() {
        report.within(&format!("Identities[{at}]"), &format!("identity \"{}\"", identity.name), |report| {
            if !seen.insert(&identity.name) {
                report.error("Name", "a second identity of this name");
            }
            self::identity(report, identity);
        });
    }
    let unnamed = |identity: &WorkloadIdentity| matches!(identity.name.as_str(), "" | "default");
    if task.identity.is_some() && task.identities.iter().any(unnamed) {
        report.error("Identities", "a second default identity");
    }
    if let Some(own) = &task.identity {
        report.within("Identity", "identity", |report| {
            if own.ttl != Duration::default() {
                report.error("TTL", "the default identity has no ttl");
            }
            identity(report, own);
        });
    }
    secrets(report, task);
}

fn identity(report: &mut Report, identity: &WorkloadIdentity) {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if identity.name.len() > NAME_MAX || !identity.name.chars().all(plain) {
        report.error("Name", format!("an identity name has 1 to {NAME_MAX} letters, digits, - and _"));
    }
    if identity.ttl < Duration::default() {
        report.error("TTL", "ttl is negative");
    }
    if !identity.filepath.is_empty() && !identity.file {
        report.error("Filepath", "filepath needs file = true");
    }
    report.one_of("ChangeMode", &identity.change_mode, &["noop", "restart", "signal"]);
    if identity.change_mode == "signal" && identity.change_signal.is_empty() {
        report.error("ChangeSignal", "change_mode = \"signal\" needs change_signal");
    }
}

fn secrets(report: &mut Report, task: &Task) {
    let mut seen = BTreeSet::new();
    for (at, secret) in task.secrets.iter().enumerate() {
        report.within(&format!("Secrets[{at}]"), &format!("secret \"{}\"", secret.name), |report| {
            if !seen.insert(&secret.name) {
                report.error("Name", "a second secret of this name");
            }
            self::secret(report, task, secret);
        });
    }
}

fn secret(report: &mut Report, task: &Task, secret: &Secret) {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !(1..=NAME_MAX).contains(&secret.name.len()) || !secret.name.chars().all(plain) {
        report.error("Name", format!("a secret name has 1 to {NAME_MAX} letters, digits and _"));
    }
    if secret.provider.is_empty() || secret.path.is_empty() {
        report.error("Provider", "a secret needs a provider and a path");
    }
    match secret.provider.as_str() {
        "nomad" | "vault" if !secret.env.is_empty() => {
            report.error("Env", format!("the provider {} takes no env", secret.provider));
        }
        "vault" if task.vault.is_none() => report.error("Provider", "the provider vault needs a vault block"),
        "nomad" | "vault" => {}
        _ if !secret.config.is_empty() => report.error("Config", "secret plugins take no config"),
        _ => {}
    }
}

fn extras(report: &mut Report, task: &Task) {
    let mut seen = BTreeSet::new();
    for (at, action) in task.actions.iter().enumerate() {
        let field = format!("Actions[{at}]");
        if action.name.is_empty() || action.command.is_empty() {
            report.error(&field, "an action needs a name and a command");
        }
        if !seen.insert(&action.name) {
            report.error(&field, format!("a second action \"{}\"", action.name));
        }
    }
    if task.schedule.is_some() {
        report.error("Schedule", "task schedules are not supported");
    }
    if let Some(plugin) = &task.csi_plugin_config
        && (plugin.id.is_empty() || !["node", "controller", "monolith"].contains(&plugin.kind.as_str()))
    {
        report.error("CSIPluginConfig", "csi_plugin needs an id and a type: node, controller or monolith");
    }
    for (at, policy) in task.scaling_policies.iter().enumerate() {
        if policy.max.is_some_and(|most| policy.min.unwrap_or(0) > most) {
            report.error(&format!("ScalingPolicies[{at}]"), "the minimum is more than the maximum");
        }
    }
}

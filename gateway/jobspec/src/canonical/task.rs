use model::document::{
    Duration, LogConfig, Task, TaskArtifact, TaskCSIPluginConfig, TaskLifecycle, Template, Vault, VolumeMount,
};

use super::group::complete_resources;
use super::{fill, fill_text, service};

pub(super) fn apply_defaults(task: &mut Task, job: &str, group: &str) {
    if task.lifecycle == Some(TaskLifecycle::default()) {
        task.lifecycle = None;
    }
    complete_resources(task.resources.get_or_insert_default());
    fill(&mut task.kill_timeout, Duration::from_secs(5));
    complete_logs(task.log_config.get_or_insert_default());
    task.affinities.iter_mut().for_each(|affinity| fill(&mut affinity.weight, 50_i8));
    task.artifacts.iter_mut().for_each(complete_artifact);
    task.vault.iter_mut().for_each(complete_vault);
    task.templates.iter_mut().for_each(complete_template);
    task.volume_mounts.iter_mut().for_each(complete_mount);
    task.csi_plugin_config.iter_mut().for_each(complete_plugin);
    if let Some(consul) = &mut task.consul {
        fill_text(&mut consul.cluster, "default");
    }
    for policy in &mut task.scaling_policies {
        fill(&mut policy.enabled, true);
        fill(&mut policy.min, 0_i64);
    }
    for given in &mut task.services {
        service::apply_defaults(given, &service::Owner { job, group, task: Some(&task.name) });
    }
}

pub(super) fn complete_logs(logs: &mut LogConfig) {
    fill(&mut logs.max_files, 10_i64);
    fill(&mut logs.max_file_size_mb, 10_i64);
    fill(&mut logs.disabled, !logs.enabled.unwrap_or(true));
}

fn complete_artifact(artifact: &mut TaskArtifact) {
    fill(&mut artifact.getter_mode, "any");
    fill(&mut artifact.getter_insecure, false);
    fill(&mut artifact.getter_source, "");
    let source = artifact.getter_source.as_deref().unwrap_or_default().trim_end_matches('/');
    let destination = match artifact.getter_mode.as_deref() {
        Some("file") => format!("local/{}", source.rsplit('/').next().unwrap_or_default()),
        _ => "local/".to_string(),
    };
    fill(&mut artifact.relative_dest, destination);
}

fn complete_vault(vault: &mut Vault) {
    fill(&mut vault.env, true);
    fill(&mut vault.disable_file, false);
    fill(&mut vault.namespace, "");
    fill_text(&mut vault.cluster, "default");
    fill(&mut vault.change_mode, "restart");
    fill(&mut vault.change_signal, "SIGHUP");
    fill(&mut vault.allow_token_expiration, false);
}

fn complete_template(template: &mut Template) {
    fill(&mut template.source_path, "");
    fill(&mut template.dest_path, "");
    fill(&mut template.embedded_tmpl, "");
    fill(&mut template.change_mode, "restart");
    let by_signal = template.change_mode.as_deref() == Some("signal");
    fill(&mut template.change_signal, if by_signal { "SIGHUP" } else { "" });
    template.change_signal = template.change_signal.take().map(|signal| signal.to_uppercase());
    fill(&mut template.once, false);
    fill(&mut template.splay, Duration::from_secs(5));
    fill(&mut template.perms, "0644");
    fill(&mut template.left_delim, "{{");
    fill(&mut template.right_delim, "}}");
    fill(&mut template.envvars, false);
    fill(&mut template.vault_grace, Duration::default());
    fill(&mut template.err_missing_key, false);
    if let Some(script) = &mut template.change_script {
        fill(&mut script.command, "");
        fill(&mut script.timeout, Duration::from_secs(5));
        fill(&mut script.fail_on_error, false);
        fill(&mut script.run_on_first_render, false);
    }
}

pub(super) fn complete_mount(mount: &mut VolumeMount) {
    fill(&mut mount.read_only, false);
    fill(&mut mount.propagation_mode, "private");
    fill(&mut mount.se_linux_label, "");
}

fn complete_plugin(plugin: &mut TaskCSIPluginConfig) {
    fill_text(&mut plugin.mount_dir, "/csi");
    fill_text(&mut plugin.stage_publish_base_dir, "/local/csi");
    if plugin.health_timeout == Duration::default() {
        plugin.health_timeout = Duration::from_secs(30);
    }
}

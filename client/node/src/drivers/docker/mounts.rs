//! What a container sees of the host's files.

use bollard::models::{
    HostConfig, Mount, MountBindOptions, MountTmpfsOptions, MountType, MountVolumeOptions,
    MountVolumeOptionsDriverConfig,
};

use super::super::containers::mounts::{self, DISABLED, host_path};
use super::settings::Settings;
use crate::driver::{TaskConfig, TaskMount, Values};

/// The task's own directories, and what it asks for besides.
///
/// # Errors
/// When it asks for what is not allowed.
pub fn add(settings: &Settings, config: &TaskConfig, host: &mut HostConfig) -> Result<(), String> {
    let keys = &config.config;
    if keys.text("volume_driver").is_some() && !settings.volumes_enabled {
        return Err(format!("volume_driver: {DISABLED}"));
    }
    let mut binds = own(settings, config);
    binds.extend(config.mounts.iter().map(volume));
    for volume in keys.texts("volumes") {
        binds.push(bind(settings, config, volume)?);
    }
    host.binds = Some(binds);
    let blocks = keys.blocks("mount").iter().chain(keys.blocks("mounts"));
    host.mounts = Some(blocks.map(|block| mount(settings, config, block)).collect::<Result<_, _>>()?);
    Ok(())
}

fn own(settings: &Settings, config: &TaskConfig) -> Vec<String> {
    let bind = |(from, to, read_only): (std::path::PathBuf, &str, bool)| {
        let mode = if read_only { "ro" } else { "" };
        let options: Vec<&str> =
            [mode, settings.selinux_label.as_str()].into_iter().filter(|option| !option.is_empty()).collect();
        match options.is_empty() {
            true => format!("{}:{to}", from.display()),
            false => format!("{}:{to}:{}", from.display(), options.join(",")),
        }
    };
    mounts::own(config).into_iter().map(bind).collect()
}

/// A volume of the group. It is the operator's, who has given it to this node: it needs no further permission.
fn volume(mount: &TaskMount) -> String {
    let mode = if mount.read_only { "ro" } else { "rw" };
    let options = [mode, mount.propagation, &mount.selinux_label];
    let options: Vec<&str> = options.into_iter().filter(|option| !option.is_empty()).collect();
    format!("{}:{}:{}", mount.host_path.display(), mount.task_path, options.join(","))
}

fn bind(settings: &Settings, config: &TaskConfig, volume: &str) -> Result<String, String> {
    let (source, target, mode) = mounts::split(volume)?;
    // With a driver of volumes the source is a name that is known to that.
    let source = match config.config.text("volume_driver") {
        Some(_) => source.to_string(),
        None => host_path(settings.volumes_enabled, config, source, "volumes")?,
    };
    let options: Vec<&str> =
        [mode, settings.selinux_label.as_str()].into_iter().filter(|option| !option.is_empty()).collect();
    Ok(match options.is_empty() {
        true => format!("{source}:{target}"),
        false => format!("{source}:{target}:{}", options.join(",")),
    })
}

fn mount(settings: &Settings, config: &TaskConfig, block: &Values) -> Result<Mount, String> {
    let kind = block.text("type").unwrap_or("volume");
    let text = |key: &str| block.text(key).map(str::to_string);
    let fits = [("bind_options", "bind"), ("volume_options", "volume"), ("tmpfs_options", "tmpfs")];
    for (options, of) in fits {
        if block.block(options).is_some() && kind != of {
            return Err(format!("mount: {options} is for mounts of type \"{of}\", not \"{kind}\""));
        }
    }
    let mut mount = Mount {
        target: text("target"),
        source: text("source"),
        read_only: Some(block.boolean("readonly")),
        ..Mount::default()
    };
    match kind {
        "bind" => {
            let source = block.text("source").ok_or("mount: a mount of type \"bind\" needs a source")?;
            mount.typ = Some(MountType::BIND);
            mount.source = Some(host_path(settings.volumes_enabled, config, source, "mount")?);
            mount.bind_options = block.block("bind_options").map(bind_options).transpose()?;
        }
        "volume" => {
            mount.typ = Some(MountType::VOLUME);
            mount.volume_options =
                block.block("volume_options").map(|options| volume_options(settings, options)).transpose()?;
        }
        "tmpfs" => {
            if mount.source.is_some() {
                return Err("mount: a mount of type \"tmpfs\" has no source".to_string());
            }
            mount.typ = Some(MountType::TMPFS);
            mount.tmpfs_options = block.block("tmpfs_options").map(|options| MountTmpfsOptions {
                size_bytes: options.number("size"),
                mode: options.number("mode"),
                options: None,
            });
        }
        other => {
            return Err(format!("mount: type must be \"bind\", \"volume\" or \"tmpfs\", not \"{other}\""));
        }
    }
    Ok(mount)
}

fn bind_options(block: &Values) -> Result<MountBindOptions, String> {
    let Some(name) = block.text("propagation") else { return Ok(MountBindOptions::default()) };
    let propagation = name.parse().map_err(|_| format!("mount: propagation \"{name}\" is not known"))?;
    Ok(MountBindOptions { propagation: Some(propagation), ..MountBindOptions::default() })
}

fn volume_options(settings: &Settings, block: &Values) -> Result<MountVolumeOptions, String> {
    let driver = block.block("driver_config");
    // The driver `local` can be made to mount any directory of the host.
    if driver.is_some() && !settings.volumes_enabled {
        return Err(format!("mount: driver_config: {DISABLED}"));
    }
    Ok(MountVolumeOptions {
        no_copy: Some(block.boolean("no_copy")),
        labels: Some(block.map("labels").into_iter().collect()),
        driver_config: driver.map(|driver| MountVolumeOptionsDriverConfig {
            name: driver.text("name").map(str::to_string),
            options: Some(driver.map("options").into_iter().collect()),
        }),
        subpath: None,
    })
}

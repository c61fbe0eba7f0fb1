//! What containers of every engine see of the host's files.

use std::path::{Component, Path, PathBuf};

use crate::driver::TaskConfig;

pub const DISABLED: &str = "volumes are not enabled on this node";

/// The task's own directories: on the host, inside, and whether they are only to be read.
pub fn own(config: &TaskConfig) -> [(PathBuf, &'static str, bool); 4] {
    [
        (config.shared_dir.clone(), "/alloc", false),
        (config.dir.local.clone(), "/local", false),
        (config.dir.secrets.clone(), "/secrets", false),
        // Its output is written for it; what it says itself must not be lost in between.
        (config.shared_dir.join("logs"), "/alloc/logs", true),
    ]
}

/// `SOURCE:TARGET` or `SOURCE:TARGET:MODE`; the mode may be empty.
///
/// # Errors
/// When it is neither.
pub fn split(volume: &str) -> Result<(&str, &str, &str), String> {
    let parts: Vec<&str> = volume.split(':').collect();
    let ([source, target] | [source, target, _]) = parts[..] else {
        return Err(format!("volumes: \"{volume}\" must be \"source:target\" or \"source:target:mode\""));
    };
    if source.is_empty() || !target.starts_with('/') {
        return Err(format!("volumes: \"{volume}\" must have a source and an absolute target"));
    }
    Ok((source, target, parts.get(2).copied().unwrap_or_default()))
}

/// A path of the host: inside of the allocation, or, where the operator allows it, anywhere.
///
/// # Errors
/// When it is elsewhere, or not text.
pub fn host_path(anywhere: bool, config: &TaskConfig, path: &str, key: &str) -> Result<String, String> {
    let path = normalized(&config.dir.root.join(path));
    let alloc = config.shared_dir.parent().unwrap_or(&config.shared_dir);
    if !anywhere && !resolved(&path).starts_with(resolved(alloc)) {
        return Err(format!(
            "{key}: {DISABLED}; cannot mount {} from outside of the allocation",
            path.display()
        ));
    }
    match path.to_str() {
        Some(path) => Ok(path.to_string()),
        None => Err(format!("{key}: {} is not text", path.display())),
    }
}

/// Without `.` and `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

/// Where a path leads, as far as it exists: a task can put links into its directories.
fn resolved(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(found) = ancestor.canonicalize() {
            let rest = path.strip_prefix(ancestor).expect("an ancestor is a prefix");
            return found.join(rest);
        }
        // A link to what does not exist yet leads out all the same.
        if let Ok(target) = ancestor.read_link() {
            let parent = ancestor.parent().unwrap_or(Path::new("/"));
            return normalized(&parent.join(target));
        }
    }
    path.to_path_buf()
}

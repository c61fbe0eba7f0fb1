//! Files of an allocation.

use api::AllocFileInfo;

use super::cell;
use crate::output::{OutputStyle, Table, bytes};

/// What is in a directory.
pub(crate) fn list(style: &OutputStyle, files: &[AllocFileInfo], units: bool) -> String {
    let mut table = Table::new(["Mode", "Size", "Modified Time", "Name"]);
    for file in files {
        let name = if file.is_dir { format!("{}/", file.name) } else { file.name.clone() };
        let modified = style.time(file.mod_time.time().0);
        table.row([file.file_mode.clone(), size(file, units), modified, name]);
    }
    table.render()
}

/// What one file is.
pub(crate) fn stat(style: &OutputStyle, file: &AllocFileInfo, units: bool) -> String {
    let mut table = Table::new(["Mode", "Size", "Modified Time", "Content Type", "Name"]);
    table.row([
        file.file_mode.clone(),
        size(file, units),
        style.time(file.mod_time.time().0),
        file.content_type.clone(),
        file.name.clone(),
    ]);
    table.render()
}

fn size(file: &AllocFileInfo, units: bool) -> String {
    if units { bytes(u64::try_from(file.size).unwrap_or(0)) } else { cell(file.size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_end_with_a_slash() {
        let file = AllocFileInfo {
            name: "alloc".into(),
            is_dir: true,
            size: 4096,
            file_mode: "drwxrwxrwx".into(),
            ..AllocFileInfo::default()
        };
        let plain = AllocFileInfo { name: "a.txt".into(), is_dir: false, ..file.clone() };
        assert_eq!(
            list(&OutputStyle::for_tests(), &[file, plain.clone()], false),
            "Mode        Size  Modified Time  Name\n\
             drwxrwxrwx  4096  N/A            alloc/\n\
             drwxrwxrwx  4096  N/A            a.txt\n"
        );
        assert!(
            stat(&OutputStyle::for_tests(), &plain, true)
                .contains("  4.0 KiB  N/A            <none>        a.txt\n")
        );
    }
}

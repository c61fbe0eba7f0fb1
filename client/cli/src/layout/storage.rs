//! How much history a server has, and whether it is whole.

use api::{HistoryArchive, HistoryFileVerified, HistoryStorage};
use model::document::Timestamp;

use super::cell;
use crate::output::{OutputStyle, Table, bytes, fields};

/// Files that were read, in order, and what is wrong.
#[derive(Default)]
pub(crate) struct Verified {
    pub files: Vec<HistoryFileVerified>,
    pub problems: Vec<String>,
}

impl Verified {
    /// The next file, which has to continue the one before.
    pub(crate) fn add(&mut self, file: HistoryFileVerified) {
        if let Some(last) = self.files.last().filter(|last| last.ends != file.begins) {
            self.problems.push(format!(
                "{} does not continue {}: expected a file that begins with index {}",
                file.name,
                last.name,
                last.last_index + 1
            ));
        }
        self.files.push(file);
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.problems.is_empty()
    }
}

pub(crate) fn status(style: &OutputStyle, found: &HistoryStorage) -> String {
    let time = |time: &Option<Timestamp>| time.as_ref().map_or("<unknown>".to_string(), cell);
    let mut all = fields(&[
        ("Server", found.server.clone()),
        ("Oldest Index", cell(found.oldest_index)),
        ("Oldest Time", time(&found.oldest_time)),
        ("Newest Index", cell(found.newest_index)),
        ("Policy", format!("min_age {}, max_bytes {}", found.min_age, bytes(found.max_bytes))),
    ]);
    let log = fields(&[
        ("Segments", cell(found.segments)),
        ("Size", bytes(found.segment_bytes)),
        ("Oldest Index", cell(found.log_oldest_index)),
    ]);
    let archive = match &found.archive {
        Some(archive) => archived(archive),
        None => "None: what leaves the log is gone\n".to_string(),
    };
    all += &style.section("Log", &log);
    all + &style.section("Archive", &archive)
}

fn archived(archive: &HistoryArchive) -> String {
    let most = archive.max_bytes.map_or("the disk".to_string(), bytes);
    let mut lines = vec![
        ("Files", cell(archive.files)),
        ("Size", format!("{}, of {most}", bytes(archive.bytes))),
        ("Uncompressed", format!("{}{}", bytes(archive.raw_bytes), ratio(archive.raw_bytes, archive.bytes))),
    ];
    if archive.files > 0 {
        lines.push(("Oldest Index", cell(archive.oldest_index)));
    }
    if archive.apart_files > 0 {
        let apart = format!("{} files, {}", archive.apart_files, bytes(archive.apart_bytes));
        lines.push(("Before a Gap", apart));
    }
    if !archive.damaged.is_empty() {
        lines.push(("Damaged", archive.damaged.join(", ")));
    }
    if !archive.failed.is_empty() {
        lines.push(("Failed", archive.failed.clone()));
    }
    fields(&lines)
}

/// What was read; with `-verbose` file by file.
pub(crate) fn verified(style: &OutputStyle, found: &Verified) -> String {
    let mut all = String::new();
    if style.verbose {
        let mut table = Table::new(["File", "First", "Last", "Size", "Uncompressed"]);
        for file in &found.files {
            table.row([
                file.name.clone(),
                cell(file.first_index),
                cell(file.last_index),
                bytes(file.bytes),
                bytes(file.raw_bytes),
            ]);
        }
        all = table.render() + "\n";
    }
    let sum = |size: fn(&HistoryFileVerified) -> u64| found.files.iter().map(size).sum::<u64>();
    let (size, raw) = (sum(|file| file.bytes), sum(|file| file.raw_bytes));
    let first = found.files.first().map_or(0, |file| file.first_index);
    let last = found.files.last().map_or(0, |file| file.last_index);
    all += &fields(&[
        ("Files", cell(found.files.len())),
        ("Indexes", format!("{first} to {last}")),
        ("Size", bytes(size)),
        ("Uncompressed", bytes(raw)),
        ("Result", if found.is_whole() { "whole" } else { "not whole" }.to_string()),
    ]);
    found.problems.iter().for_each(|problem| all += &format!("  {problem}\n"));
    all
}

/// How many times smaller it is, if it is known.
fn ratio(raw: u64, packed: u64) -> String {
    if packed == 0 { String::new() } else { format!(", {:.1} times as much", raw as f64 / packed as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, span: (u64, u64), begins: &str, ends: &str) -> HistoryFileVerified {
        HistoryFileVerified {
            name: name.into(),
            first_index: span.0,
            last_index: span.1,
            begins: begins.into(),
            ends: ends.into(),
            ..HistoryFileVerified::default()
        }
    }

    #[test]
    fn a_file_that_does_not_continue_the_one_before_is_a_problem() {
        let mut found = Verified::default();
        found.add(file("a", (1, 5), "0:0", "6:a"));
        found.add(file("b", (6, 9), "6:a", "10:b"));
        assert!(found.is_whole());
        found.add(file("d", (15, 20), "16:c", "21:d"));
        assert_eq!(found.problems, ["d does not continue b: expected a file that begins with index 10"]);
    }

    #[test]
    fn sizes_come_with_how_much_smaller_they_are() {
        assert_eq!((ratio(50, 10), ratio(0, 0)), (", 5.0 times as much".to_string(), String::new()));
    }
}

//! How much history a server has, and whether it is whole.

use api::{HistoryArchive, HistoryFileVerified, HistoryKept, HistoryStorage};
use model::document::Timestamp;

use super::cell;
use crate::output::{OutputStyle, Table, bytes, fields};

/// Files that were read, in order, and what is wrong.
#[derive(Default)]
pub(crate) struct Verified {
    pub files: Vec<HistoryFileVerified>,
    /// Of facts that are kept of older entries.
    pub kept: Vec<HistoryFileVerified>,
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

    /// Where nothing is kept between kept facts, or between those and the history that is whole.
    fn gaps(&self) -> Vec<String> {
        let next = self.kept.iter().skip(1).chain(self.files.first());
        let apart = self.kept.iter().zip(next).filter(|(one, next)| one.ends != next.begins);
        apart
            .map(|(one, next)| {
                format!("nothing is kept between index {} and index {}", one.last_index, next.first_index)
            })
            .collect()
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
        None if keeps(found) => "None: what leaves the log is gone, but for what is kept\n".to_string(),
        None => "None: what leaves the log is gone\n".to_string(),
    };
    all += &style.section("Log", &log);
    all += &style.section("Archive", &archive);
    if let Some(kept) = &found.kept {
        all += &style.section("Kept", &kept_facts(style, kept));
    }
    if !found.dropped.is_empty() {
        let mut table = Table::new(["Server", "Oldest Index", "Oldest Time", "Said At"]);
        for said in found.dropped.iter() {
            let from = (cell(said.oldest_index), time(&said.oldest_time));
            table.row([said.server.clone(), from.0, from.1, cell(said.index)]);
        }
        all += &style.section("Dropped", &table.render());
    }
    all
}

fn keeps(found: &HistoryStorage) -> bool {
    found.kept.as_ref().is_some_and(|kept| !kept.kinds.is_empty())
}

fn kept_facts(style: &OutputStyle, kept: &HistoryKept) -> String {
    let kinds = |kinds: &[String]| if kinds.is_empty() { "none".to_string() } else { kinds.join(", ") };
    let mut lines = vec![
        ("Kinds", kinds(&kept.kinds)),
        ("Files", cell(kept.files)),
        ("Size", format!("{}, of {}", bytes(kept.bytes), bytes(kept.max_bytes))),
        ("Uncompressed", format!("{}{}", bytes(kept.raw_bytes), ratio(kept.raw_bytes, kept.bytes))),
    ];
    if !kept.damaged.is_empty() {
        lines.push(("Damaged", kept.damaged.join(", ")));
    }
    if !kept.failed.is_empty() {
        lines.push(("Failed", kept.failed.clone()));
    }
    let mut table = Table::new(["From", "To", "Facts", "First", "Last", "Of"]);
    for part in &kept.parts {
        let time =
            |time: &Option<Timestamp>| time.as_ref().map_or(String::new(), |time| style.time(time.time().0));
        table.row([
            cell(part.first_index),
            cell(part.last_index),
            cell(part.facts),
            time(&part.first_time),
            time(&part.last_time),
            kinds(&part.kinds),
        ]);
    }
    if kept.parts.is_empty() { fields(&lines) } else { fields(&lines) + "\n" + &table.render() }
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
        for file in found.kept.iter().chain(&found.files) {
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
    if let (Some(first), Some(last)) = (found.kept.first(), found.kept.last()) {
        let size = found.kept.iter().map(|file| file.bytes).sum::<u64>();
        all += &fields(&[
            ("Kept Files", cell(found.kept.len())),
            ("Kept Indexes", format!("some facts of {} to {}", first.first_index, last.last_index)),
            ("Kept Size", bytes(size)),
        ]);
        found.gaps().iter().for_each(|gap| all += &format!("  {gap}\n"));
        all += "\n";
    }
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
    fn gaps_between_kept_facts_are_named_and_are_no_damage() {
        let kept = vec![file("a", (1, 5), "0:0", "6:a"), file("b", (6, 9), "6:a", "10:b")];
        let mut found = Verified { kept, ..Verified::default() };
        found.add(file("c", (10, 14), "10:b", "15:c"));
        assert!(found.gaps().is_empty());
        found.kept.remove(1);
        assert_eq!(found.gaps(), ["nothing is kept between index 5 and index 10"]);
        assert!(found.is_whole());
        let shown = verified(&OutputStyle::for_tests(), &found);
        assert!(
            shown.contains("some facts of 1 to 5") && shown.contains("  nothing is kept between"),
            "{shown}"
        );
    }

    #[test]
    fn what_is_kept_is_a_part_of_the_status() {
        let style = OutputStyle::for_tests();
        let part = api::KeptHistory {
            first_index: 1,
            last_index: 40,
            first_time: Some(style.now.into()),
            last_time: Some(style.now.into()),
            kinds: vec!["job".to_string()].into(),
            facts: 3,
        };
        let kept = HistoryKept {
            kinds: vec!["job".to_string(), "acl".to_string()].into(),
            parts: vec![part].into(),
            files: 1,
            bytes: 2048,
            raw_bytes: 4096,
            max_bytes: 1 << 30,
            ..HistoryKept::default()
        };
        let found = HistoryStorage { kept: Some(kept), ..HistoryStorage::default() };
        let shown = status(&style, &found);
        assert!(shown.contains("None: what leaves the log is gone, but for what is kept"), "{shown}");
        let (_, section) = shown.split_once("Kept\n").unwrap();
        assert_eq!(
            section,
            "Kinds        = job, acl\n\
             Files        = 1\n\
             Size         = 2.0 KiB, of 1.0 GiB\n\
             Uncompressed = 4.0 KiB, 2.0 times as much\n\n\
             From  To  Facts  First                 Last                  Of\n\
             1     40  3      2026-01-02T03:04:05Z  2026-01-02T03:04:05Z  job\n"
        );
    }

    #[test]
    fn sizes_come_with_how_much_smaller_they_are() {
        assert_eq!((ratio(50, 10), ratio(0, 0)), (", 5.0 times as much".to_string(), String::new()));
    }
}

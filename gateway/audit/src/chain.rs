//! Entries as lines, each linked to the line before it.
//!
//! A line ends with `"previous":"P","chain":"C"}`: `P` is the `C` of the line before, and `C` the BLAKE3 of everything in the
//! line before the word `chain`, `P` included. So nobody changes a line without changing all that follow. Who can write the
//! file can do that too: the last `C`, kept elsewhere, is what a copy is compared with.

use std::io::{self, BufRead};

use crate::entry::Entry;

/// Longest line that is read back, in bytes: paths and the headers of a request are bounded far below it.
pub(crate) const LINE_MAX: usize = 1 << 20;

const PREVIOUS: &str = ",\"previous\":\"";
const CHAIN: &str = "\",\"chain\":\"";
const END: &str = "\"}";

/// The hash of a line, in hex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link(String);

impl Link {
    /// Before the first line.
    pub fn first() -> Link {
        Link("0".repeat(blake3::OUT_LEN * 2))
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// The next line, with its end.
    pub(crate) fn line(&self, entry: &Entry) -> (String, Link) {
        let mut line = serde_json::to_string(entry).expect("an entry has no failing parts");
        line.pop();
        line.push_str(PREVIOUS);
        line.push_str(&self.0);
        let link = Link(blake3::hash(line.as_bytes()).to_hex().to_string());
        line.push_str(CHAIN);
        line.push_str(&link.0);
        line.push_str(END);
        line.push('\n');
        (line, link)
    }
}

/// Of a line without its end: what it says comes before it, and its own link. `None` if it is no line of ours, or was
/// changed.
pub(crate) fn links(line: &str) -> Option<(Link, Link)> {
    let (hashed, chain) = line.strip_suffix(END)?.rsplit_once(CHAIN)?;
    let (_, previous) = hashed.rsplit_once(PREVIOUS)?;
    let is_own = blake3::hash(hashed.as_bytes()).to_hex().as_str() == chain;
    is_own.then(|| (Link(previous.to_string()), Link(chain.to_string())))
}

/// What an unbroken chain holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub entries: u64,
    /// What came before the first of them.
    pub before: Link,
    /// Of the last.
    pub last: Link,
}

#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    #[error("line {line}: it was changed, or is no entry")]
    Changed { line: u64 },
    #[error(
        "line {line}: it does not follow the line before it: lines are missing, or stand in another order"
    )]
    Gap { line: u64 },
    #[error("line {line}: it is longer than {LINE_MAX} bytes")]
    Long { line: u64 },
}

/// Reads a file, or its part, that follows `after` if that is known.
///
/// # Errors
/// [`VerifyError`], with the first line that does not fit.
pub fn verify(mut lines: impl BufRead, after: Option<&Link>) -> Result<Verified, VerifyError> {
    let (mut before, mut last) = (after.cloned(), after.cloned());
    let mut number = 0;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let limit = LINE_MAX as u64 + 1;
        if io::Read::take(&mut lines, limit).read_until(b'\n', &mut bytes)? == 0 {
            let first = Link::first();
            let (before, last) = (before.unwrap_or(first.clone()), last.unwrap_or(first));
            return Ok(Verified { entries: number, before, last });
        }
        number += 1;
        if bytes.len() > LINE_MAX {
            return Err(VerifyError::Long { line: number });
        }
        let whole = bytes.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
        let (previous, own) = whole.and_then(links).ok_or(VerifyError::Changed { line: number })?;
        if last.as_ref().is_some_and(|last| *last != previous) {
            return Err(VerifyError::Gap { line: number });
        }
        before.get_or_insert(previous);
        last = Some(own);
    }
}

#[cfg(test)]
mod tests {
    use crate::entry::{Auth, Request};

    use super::*;

    fn lines(count: u32) -> Vec<String> {
        let mut link = Link::first();
        let mut lines = Vec::new();
        for number in 0..count {
            // A path may hold what stands between the parts of a line.
            let endpoint = format!("/v1/job/\",\"chain\":\"{number}");
            let request = Request { endpoint, ..Request::default() };
            let entry =
                Entry::new(number.to_string(), "2026-01-01T00:00:00Z".into(), Auth::default(), request, None);
            let (line, next) = link.line(&entry);
            lines.push(line);
            link = next;
        }
        lines
    }

    fn verified(lines: &[String]) -> Result<Verified, String> {
        verify(lines.concat().as_bytes(), None).map_err(|error| error.to_string())
    }

    #[test]
    fn a_line_is_json_with_its_links() {
        let line = lines(1).remove(0);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["payload"]["stage"], "OperationReceived");
        assert_eq!(value["previous"], Link::first().text());
        assert_eq!(value["chain"].as_str().unwrap().len(), 64);
    }

    #[test]
    fn whatever_was_done_to_the_lines_is_found() {
        let whole = lines(4);
        let all = verified(&whole).unwrap();
        assert_eq!((all.entries, &all.before), (4, &Link::first()));
        let part = verified(&whole[2..]).unwrap();
        assert_eq!((part.entries, &part.last), (2, &all.last), "a file whose predecessor is gone");
        assert!(verify(whole[2..].concat().as_bytes(), Some(&part.before)).is_ok());
        assert!(verify(whole[3..].concat().as_bytes(), Some(&part.before)).is_err());

        let with = |change: fn(&mut Vec<String>)| {
            let mut changed = whole.clone();
            change(&mut changed);
            verified(&changed).unwrap_err()
        };
        assert!(
            with(|lines| lines[1] = lines[1].replace("\"id\":\"1\"", "\"id\":\"7\""))
                .starts_with("line 2: it was changed")
        );
        assert!(with(|lines| drop(lines.remove(1))).starts_with("line 2: it does not follow"));
        assert!(with(|lines| lines.swap(1, 2)).starts_with("line 2: it does not follow"));
        assert!(with(|lines| lines[3].truncate(40)).starts_with("line 4: it was changed"));
        assert!(with(|lines| lines.insert(2, "{}\n".to_string())).starts_with("line 3: it was changed"));
    }

    #[test]
    fn every_changed_byte_of_a_line_is_found() {
        let line = lines(1).remove(0);
        for at in 0..line.len() {
            let mut bytes = line.clone().into_bytes();
            bytes[at] ^= 1;
            assert!(verify(&bytes[..], None).is_err(), "byte {at}");
        }
    }
}

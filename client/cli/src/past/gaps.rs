//! What is there of history that the log no longer has, in words.

use api::{KeptHistory, ObjectHistory};

use crate::output::write_err;

/// Says on standard error where a history has gaps.
pub(crate) fn write_gaps(history: &ObjectHistory) {
    if let Some(text) = gaps(history) {
        write_err(text);
    }
}

/// `None` where every fact from the first one on is there.
fn gaps(history: &ObjectHistory) -> Option<String> {
    let whole_from = history.whole_from;
    if whole_from <= 1 {
        return None;
    }
    let mut lines = Vec::new();
    // From the newest to the oldest: each says what is kept up to where the one before it begins.
    let mut upto = whole_from;
    for part in history.kept.iter().rev() {
        if part.last_index + 1 < upto {
            lines.push(format!("Below index {upto} nothing is kept"));
        }
        lines.push(format!("Below index {} only {} facts are kept", part.last_index + 1, kinds(part)));
        upto = part.first_index;
    }
    if upto > 1 {
        lines.push(format!("Below index {upto} nothing is kept"));
    }
    Some(lines.join("\n"))
}

/// `job, variable and acl`.
fn kinds(part: &KeptHistory) -> String {
    match part.kinds.as_slice() {
        [] => "no".to_string(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(whole_from: u64, parts: &[(u64, u64, &[&str])]) -> ObjectHistory {
        let part = |(first, last, kinds): &(u64, u64, &[&str])| KeptHistory {
            first_index: *first,
            last_index: *last,
            kinds: kinds.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().into(),
            ..KeptHistory::default()
        };
        let kept = parts.iter().map(part).collect::<Vec<_>>().into();
        ObjectHistory { whole_from, kept, ..ObjectHistory::default() }
    }

    #[test]
    fn each_gap_is_named_where_it_begins() {
        assert_eq!(gaps(&history(1, &[])), None);
        assert_eq!(gaps(&history(9, &[])).unwrap(), "Below index 9 nothing is kept");
        assert_eq!(
            gaps(&history(9, &[(1, 8, &["job", "variable", "acl"])])).unwrap(),
            "Below index 9 only job, variable and acl facts are kept"
        );
        assert_eq!(
            gaps(&history(90, &[(5, 20, &["job"]), (41, 89, &["job", "acl"])])).unwrap(),
            "Below index 90 only job and acl facts are kept\nBelow index 41 nothing is kept\n\
             Below index 21 only job facts are kept\nBelow index 5 nothing is kept"
        );
        assert_eq!(
            gaps(&history(90, &[(1, 20, &["job"])])).unwrap(),
            "Below index 90 nothing is kept\nBelow index 21 only job facts are kept"
        );
    }
}

//! Cursors of the event stream, and how far their readers are behind.

use api::{EventCursor, EventCursorShare};
use model::document::Timestamp;

use super::cell;
use crate::output::{OutputStyle, Table, fields};

/// The list of cursors.
pub(crate) fn table(style: &OutputStyle, cursors: &[EventCursor]) -> String {
    let mut table = Table::new(["Name", "Position", "Behind", "Acknowledged", "By"]);
    for cursor in cursors {
        table.row([
            cursor.name.clone(),
            place(&cursor.position).to_string(),
            behind(cursor.lag_batches, cursor.lag_seconds, cursor.gap),
            acknowledged(style, cursor.acked_at),
            cursor.acked_by.clone(),
        ]);
    }
    table.render()
}

/// One cursor.
pub(crate) fn block(style: &OutputStyle, cursor: &EventCursor) -> String {
    let expires = cursor.expires.map_or_else(|| "never".to_string(), |time| when(style, time));
    let mut text = fields(&[
        ("Name", cursor.name.clone()),
        ("Topics", topics(&cursor.topics)),
        ("Namespace", cursor.namespace.clone()),
        ("Filter", cursor.filter.clone()),
        ("Reader", cursor.reader.clone()),
        ("Began", cursor.from.clone()),
        ("Position", cursor.position.clone()),
        ("Behind", behind(cursor.lag_batches, cursor.lag_seconds, cursor.gap)),
        ("Oldest Index", cell(cursor.oldest_index)),
        ("Acknowledged", acknowledged(style, cursor.acked_at)),
        ("Acknowledged By", cursor.acked_by.clone()),
        ("Expires", expires),
    ]);
    if !cursor.shares.is_empty() {
        text.push_str(&format!("\n{}", shares(style, &cursor.shares)));
    }
    text
}

/// The readers that a cursor is split among.
fn shares(style: &OutputStyle, shares: &[EventCursorShare]) -> String {
    let mut table = Table::new(["Member", "Position", "Behind", "Acknowledged", "By"]);
    for share in shares {
        table.row([
            cell(share.member),
            place(&share.position).to_string(),
            behind(share.lag_batches, share.lag_seconds, share.gap),
            acknowledged(style, share.acked_at),
            share.acked_by.clone(),
        ]);
    }
    table.render()
}

pub(super) fn topics(topics: &[String]) -> String {
    if topics.is_empty() { "*".to_string() } else { topics.join(",") }
}

/// A position without the cluster.
pub(super) fn place(position: &str) -> &str {
    position.split('@').next().unwrap_or_default()
}

fn behind(batches: u64, seconds: u64, gap: bool) -> String {
    let lag = lag(batches, seconds);
    if gap { format!("{lag}; not all is kept") } else { lag }
}

pub(super) fn lag(batches: u64, seconds: u64) -> String {
    match batches {
        0 => "nothing".to_string(),
        1 => format!("1 batch, {seconds} s"),
        batches => format!("{batches} batches, {seconds} s"),
    }
}

pub(super) fn acknowledged(style: &OutputStyle, at: Option<Timestamp>) -> String {
    at.map_or_else(|| "never".to_string(), |time| when(style, time))
}

fn when(style: &OutputStyle, time: Timestamp) -> String {
    style.time(time.time().0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_says_how_far_behind_it_is() {
        let style = OutputStyle::for_tests();
        let done = EventCursor {
            name: "billing".into(),
            position: "7.1@5d16e7fe".into(),
            acked_at: Some(style.now.into()),
            acked_by: "anonymous".into(),
            ..EventCursor::default()
        };
        let late = EventCursor { lag_batches: 3, lag_seconds: 70, gap: true, ..done.clone() };
        let text = table(&style, &[done, EventCursor { acked_at: None, ..late }]);
        assert_eq!(
            text,
            "Name     Position  Behind                            Acknowledged          By\n\
             billing  7.1       nothing                           2026-01-02T03:04:05Z  anonymous\n\
             billing  7.1       3 batches, 70 s; not all is kept  never                 anonymous\n"
        );
    }
}

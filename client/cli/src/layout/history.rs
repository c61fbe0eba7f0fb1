//! The history of an object, one line per fact. The index is that of the stream's events: `events -after`
//! takes it.

use api::{AllocationHistory, AllocationTransition, HistoryLine, ObjectHistory, Requester};

use super::placement;
use crate::output::{OutputStyle, Table};

/// Every transition, oldest first.
pub(crate) fn table(style: &OutputStyle, history: &AllocationHistory) -> String {
    let mut table = Table::new(["Index", "Time", "Desired", "Client", "Actor", "Cause", "Description"]);
    for transition in &history.transitions {
        let AllocationTransition { old_desired, new_desired, old_client, new_client, .. } = transition;
        table.row([
            transition.index.to_string(),
            style.time(transition.time.time().0),
            change(old_desired, new_desired),
            change(old_client, new_client),
            who(&transition.actor, transition.requester.as_ref()),
            transition.cause.clone(),
            described(style, transition),
        ]);
    }
    table.render() + cut(history.cut_short)
}

/// What is known of it: also what was chosen, where it is what came of that.
fn described(style: &OutputStyle, transition: &AllocationTransition) -> String {
    let choice = transition.reconnect.as_ref().map(|choice| placement::reconnect(style, choice));
    let parts = [Some(transition.description.clone()).filter(|text| !text.is_empty()), choice];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Every fact about another object, oldest first.
pub(crate) fn lines(style: &OutputStyle, history: &ObjectHistory) -> String {
    let mut table = Table::new(["Index", "Time", "Event", "Actor", "Description"]);
    for line in &history.lines {
        table.row([
            line.index.to_string(),
            style.time(line.time.time().0),
            line.event.clone(),
            who(&line.actor, line.requester.as_ref()),
            line.description.clone(),
        ]);
    }
    table.render() + cut(history.cut_short)
}

/// Facts about anything, oldest first.
pub(crate) fn log(style: &OutputStyle, lines: &[HistoryLine]) -> String {
    let mut table = Table::new(["Index", "Time", "Object", "Event", "Actor", "Description"]);
    for line in lines {
        table.row([
            line.index.to_string(),
            style.time(line.time.time().0),
            short_ids(style, &line.object),
            line.event.clone(),
            short_ids(style, &who(&line.actor, line.requester.as_ref())),
            short_ids(style, &line.description),
        ]);
    }
    table.render()
}

/// Text with its ids as short as lists show them.
pub(crate) fn short_ids(style: &OutputStyle, text: &str) -> String {
    let is_id = |word: &str| word.parse::<base::Uuid>().is_ok();
    let mut shown = String::new();
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
        let end = word.len()
            - word
                .chars()
                .last()
                .filter(|c| !c.is_ascii_alphanumeric() && *c != '-')
                .map_or(0, char::len_utf8);
        match is_id(&word[..end]) {
            true => shown.extend([style.id(&word[..end]).as_str(), &word[end..]]),
            false => shown.push_str(word),
        }
    }
    shown
}

/// The actor; of a controller also whom it acted for.
pub(crate) fn who(actor: &str, requester: Option<&Requester>) -> String {
    let Some(Requester { accessor_id, name, address, agent }) = requester else { return actor.to_string() };
    let known = if accessor_id.is_empty() { "anonymous".to_string() } else { format!("token:{accessor_id}") };
    let named = if name.is_empty() { known.clone() } else { format!("{name} ({known})") };
    let at = if address.is_empty() { String::new() } else { format!(" at {address}") };
    // The first word is the program and its version; browsers go on for long.
    let with = agent.split_whitespace().next().map(|agent| format!(" with {agent}")).unwrap_or_default();
    if actor == known { format!("{named}{at}{with}") } else { format!("{actor} for {named}{at}{with}") }
}

fn cut(short: bool) -> &'static str {
    if short { "There are older ones, which are not shown.\n" } else { "" }
}

/// `pending -> running`; only the value where nothing changed.
fn change(old: &str, new: &str) -> String {
    if old == new || old.is_empty() { new.to_string() } else { format!("{old} -> {new}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transition_shows_what_changed_and_who_changed_it() {
        let style = OutputStyle::for_tests();
        let created = AllocationTransition {
            index: 12,
            time: style.now.into(),
            new_desired: "run".into(),
            new_client: "pending".into(),
            actor: "scheduler".into(),
            cause: "eval 11111111".into(),
            ..AllocationTransition::default()
        };
        let lost = AllocationTransition {
            index: 40,
            ordinal: 2,
            old_desired: "run".into(),
            old_client: "running".into(),
            new_desired: "run".into(),
            new_client: "unknown".into(),
            cause: "heartbeat missed".into(),
            ..created.clone()
        };
        let history =
            AllocationHistory { id: "a".into(), transitions: vec![created, lost].into(), cut_short: false };
        assert_eq!(
            table(&style, &history),
            "Index  Time                  Desired  Client              Actor      Cause             Description\n\
             12     2026-01-02T03:04:05Z  run      pending             scheduler  eval 11111111     <none>\n\
             40     2026-01-02T03:04:05Z  run      running -> unknown  scheduler  heartbeat missed  <none>\n"
        );
    }

    #[test]
    fn ids_in_text_are_shortened() {
        let style = OutputStyle::for_tests();
        let text =
            "eval/11111111-2222-3333-4444-555555555555, node:11111111-2222-3333-4444-555555555556 -> b-c";
        assert_eq!(short_ids(&style, text), "eval/11111111, node:11111111 -> b-c");
    }

    #[test]
    fn a_requester_stands_beside_the_actor() {
        let requester = |accessor: &str, name: &str, address: &str| Requester {
            accessor_id: accessor.into(),
            name: name.into(),
            address: address.into(),
            agent: String::new(),
        };
        let curl = Requester { agent: "curl/8.5.0 (x86_64)".into(), ..requester("a1", "", "::1") };
        let cases = [
            ("node:1", None, "node:1"),
            ("anonymous", Some(requester("", "", "")), "anonymous"),
            ("anonymous", Some(requester("", "", "10.0.0.7")), "anonymous at 10.0.0.7"),
            ("token:a1", Some(requester("a1", "ada", "::1")), "ada (token:a1) at ::1"),
            ("token:a1", Some(curl), "token:a1 at ::1 with curl/8.5.0"),
            ("server:worker", Some(requester("a1", "ada", "")), "server:worker for ada (token:a1)"),
            ("server:worker", Some(requester("", "", "::1")), "server:worker for anonymous at ::1"),
        ];
        for (actor, requester, expected) in cases {
            assert_eq!(who(actor, requester.as_ref()), expected);
        }
    }

    #[test]
    fn a_fact_about_another_object_is_one_line() {
        let style = OutputStyle::for_tests();
        let line = api::HistoryLine {
            index: 7,
            time: style.now.into(),
            event: "NodeStatusChanged".into(),
            actor: "controller:heartbeats".into(),
            description: "ready -> down: heartbeat missed".into(),
            ..api::HistoryLine::default()
        };
        let history = ObjectHistory {
            id: "n".into(),
            lines: vec![line].into(),
            cut_short: true,
            ..ObjectHistory::default()
        };
        assert_eq!(
            lines(&style, &history),
            "Index  Time                  Event              Actor                  Description\n\
             7      2026-01-02T03:04:05Z  NodeStatusChanged  controller:heartbeats  ready -> down: heartbeat missed\n\
             There are older ones, which are not shown.\n"
        );
    }
}

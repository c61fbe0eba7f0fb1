//! Sinks of the event stream: whether they send, and how far behind they are.

use api::EventSink;

use super::{cell, cursor};
use crate::output::{OutputStyle, Table, fields};

/// The list of sinks.
pub(crate) fn table(sinks: &[EventSink]) -> String {
    let mut table = Table::new(["Name", "Kind", "Target", "Status", "Position", "Behind"]);
    for sink in sinks {
        table.row([
            sink.name.clone(),
            sink.kind.clone(),
            target(sink),
            sink.status.clone(),
            cursor::place(&sink.position).to_string(),
            cursor::lag(sink.lag_batches, sink.lag_seconds),
        ]);
    }
    table.render()
}

/// One sink.
pub(crate) fn block(style: &OutputStyle, sink: &EventSink) -> String {
    let secret = match sink.secret_variable.as_str() {
        "" => String::new(),
        path => format!("{path} ({})", sink.secret_namespace),
    };
    let mut lines = vec![
        ("Name", sink.name.clone()),
        ("Kind", sink.kind.clone()),
        ("Target", target(sink)),
        ("Secret Variable", secret),
        ("Topics", cursor::topics(&sink.topics)),
        ("Namespace", sink.namespace.clone()),
        ("Filter", sink.filter.clone()),
        ("Attempts", cell(sink.max_attempts)),
        ("Timeout", sink.timeout.0.to_string()),
        ("Status", sink.status.clone()),
        ("Position", sink.position.clone()),
        ("Behind", cursor::lag(sink.lag_batches, sink.lag_seconds)),
        ("Acknowledged", cursor::acknowledged(style, sink.acked_at)),
    ];
    if let Some(at) = sink.parked_at {
        lines.extend([
            ("Parked At", style.time(at.time().0)),
            ("Parked Event", sink.parked_event.clone()),
            ("Failed Attempts", cell(sink.parked_attempts)),
            ("Reason", sink.parked_reason.clone()),
        ]);
    }
    fields(&lines)
}

fn target(sink: &EventSink) -> String {
    match sink.kind.as_str() {
        "webhook" => sink.url.clone(),
        "nats" => format!("{} {}", sink.address, sink.subject),
        _ => format!("{} files of {} bytes", sink.max_files, sink.max_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parked_sink_says_why() {
        let style = OutputStyle::for_tests();
        let sink = EventSink {
            name: "billing".into(),
            kind: "webhook".into(),
            url: "https://example.com/".into(),
            status: "parked".into(),
            position: "7.1@5d16e7fe".into(),
            lag_batches: 2,
            lag_seconds: 9,
            parked_event: "8.0@5d16e7fe".into(),
            parked_attempts: 10,
            parked_reason: "it answered 500 Internal Server Error".into(),
            parked_at: Some(style.now.into()),
            ..EventSink::default()
        };
        assert_eq!(
            table(std::slice::from_ref(&sink)),
            "Name     Kind     Target                Status  Position  Behind\n\
             billing  webhook  https://example.com/  parked  7.1       2 batches, 9 s\n"
        );
        let text = block(&style, &sink);
        assert!(text.contains("Reason          = it answered 500 Internal Server Error\n"), "{text}");
        assert!(text.contains("Parked Event    = 8.0@5d16e7fe\n"), "{text}");
    }
}

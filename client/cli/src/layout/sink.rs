//! Sinks of the event stream: whether they send, and how far behind they are.

use api::EventSink;

use super::cell;
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
            sink.position.split('@').next().unwrap_or_default().to_string(),
            behind(sink),
        ]);
    }
    table.render()
}

/// One sink.
pub(crate) fn block(style: &OutputStyle, sink: &EventSink) -> String {
    let topics = if sink.topics.is_empty() { "*".to_string() } else { sink.topics.join(",") };
    let acknowledged = sink.acked_at.map_or_else(|| "never".to_string(), |at| style.time(at.time().0));
    let secret = match sink.secret_variable.as_str() {
        "" => String::new(),
        path => format!("{path} ({})", sink.secret_namespace),
    };
    let mut lines = vec![
        ("Name", sink.name.clone()),
        ("Kind", sink.kind.clone()),
        ("Target", target(sink)),
        ("Secret Variable", secret),
        ("Topics", topics),
        ("Namespace", sink.namespace.clone()),
        ("Filter", sink.filter.clone()),
        ("Attempts", cell(sink.max_attempts)),
        ("Timeout", sink.timeout.0.to_string()),
        ("Status", sink.status.clone()),
        ("Position", sink.position.clone()),
        ("Behind", behind(sink)),
        ("Acknowledged", acknowledged),
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

fn behind(sink: &EventSink) -> String {
    match sink.lag_batches {
        0 => "nothing".to_string(),
        1 => format!("1 batch, {} s", sink.lag_seconds),
        batches => format!("{batches} batches, {} s", sink.lag_seconds),
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

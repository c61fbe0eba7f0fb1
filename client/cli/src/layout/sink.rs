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
    lines.extend(sending(style, sink));
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

/// What only the server knows that sends.
fn sending(style: &OutputStyle, sink: &EventSink) -> Vec<(&'static str, String)> {
    if !sink.reported {
        let unknown = "known to the leader, since it leads".to_string();
        return if sink.status == "running" { vec![("Sent", unknown)] } else { Vec::new() };
    }
    let mut lines = vec![("Sent", cell(sink.sent)), ("Failures", cell(sink.failures))];
    if let Some(at) = sink.last_failure_at {
        lines.extend([
            ("Last Failure", style.time(at.time().0)),
            ("Failed Event", sink.last_failure_event.clone()),
            ("Failed With", sink.last_failure_reason.clone()),
        ]);
    }
    if let Some(at) = sink.next_attempt_at {
        lines.extend([
            ("Attempts So Far", format!("{} of {}", sink.failed_attempts, sink.max_attempts)),
            ("Next Attempt", style.time(at.time().0)),
        ]);
    }
    lines
}

fn target(sink: &EventSink) -> String {
    match sink.kind.as_str() {
        "webhook" => sink.url.clone(),
        "otlp" if sink.signal == "traces" => format!("{} (traces)", sink.url),
        "otlp" => sink.url.clone(),
        "nats" | "kafka" if sink.tls => format!("{} {} (TLS)", sink.address, sink.subject),
        "nats" | "kafka" => format!("{} {}", sink.address, sink.subject),
        "syslog" => format!("{}://{} {} {}", sink.transport, sink.address, sink.facility, sink.app_name),
        _ => format!("{} files of {} bytes", sink.max_files, sink.max_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_shown_before_it_is_parked() {
        let style = OutputStyle::for_tests();
        let sink = EventSink {
            kind: "syslog".into(),
            address: "logs:601".into(),
            transport: "tcp".into(),
            facility: "local0".into(),
            app_name: "sojourn".into(),
            status: "running".into(),
            max_attempts: 10,
            reported: true,
            sent: 7,
            failures: 3,
            failed_attempts: 2,
            next_attempt_at: Some(style.now.into()),
            last_failure_event: "8.0@5d16e7fe".into(),
            last_failure_reason: "logs:601: Connection refused".into(),
            last_failure_at: Some(style.now.into()),
            ..EventSink::default()
        };
        let text = block(&style, &sink);
        for line in [
            "Target          = tcp://logs:601 local0 sojourn\n",
            "Sent            = 7\n",
            "Failures        = 3\n",
            "Failed With     = logs:601: Connection refused\n",
            "Attempts So Far = 2 of 10\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let kafka = EventSink {
            kind: "kafka".into(),
            address: "a:9093,b:9093".into(),
            subject: "events".into(),
            tls: true,
            ..sink.clone()
        };
        assert!(block(&style, &kafka).contains("Target          = a:9093,b:9093 events (TLS)\n"));
        let otlp = EventSink {
            kind: "otlp".into(),
            url: "https://collector/v1/traces".into(),
            signal: "traces".into(),
            ..sink.clone()
        };
        assert!(block(&style, &otlp).contains("Target          = https://collector/v1/traces (traces)\n"));
        let elsewhere = block(&style, &EventSink { reported: false, ..sink });
        assert!(elsewhere.contains("known to the leader"), "{elsewhere}");
    }

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

//! An event of the stream as one line: its id, its time, its topic, and what happened in one sentence.

use api::Event;
use serde_json::Value;

use crate::output::OutputStyle;

/// `42.0  2026-01-02T03:04:05Z  Job  job "web" was registered as version 3`.
pub(crate) fn line(style: &OutputStyle, id: &str, time: i64, event: &Event) -> String {
    let namespace = match event.namespace.as_str() {
        "" | "default" => String::new(),
        other => format!(" [{other}]"),
    };
    let (id, time) = (id.split('@').next().unwrap_or_default(), style.time(time));
    format!("{id:<10}  {time:<20}  {:<12}{}{namespace}\n", event.topic, sentence(style, event))
}

fn sentence(style: &OutputStyle, event: &Event) -> String {
    let name = match event.topic.as_str() {
        "CSIVolume" | "HostVolume" => "Volume",
        "CSIPlugin" => "Plugin",
        topic => topic,
    };
    let Some(payload) = event.payload.get(name).filter(|payload| payload.is_object()) else {
        return format!("{} {}", event.key, event.kind);
    };
    let row = Row { payload, index: event.index, style };
    match event.topic.as_str() {
        "Node" => node(&row, &event.kind),
        "Job" => {
            let purged = event.payload.get("Deleted").is_some_and(|deleted| *deleted == Value::Bool(true));
            job(&row, &event.kind, purged)
        }
        "Evaluation" => evaluation(&row),
        "Allocation" => allocation(&row),
        "Deployment" => deployment(&row),
        "CSIVolume" => csi_volume(&row, &event.kind),
        "HostVolume" => host_volume(&row, &event.kind),
        "CSIPlugin" => plugin(&row),
        "NodePool" => pool(&row, &event.kind),
        _ => format!("{} {}", event.key, event.kind),
    }
}

/// The object as it was after the event.
struct Row<'a> {
    payload: &'a Value,
    index: u64,
    style: &'a OutputStyle,
}

impl Row<'_> {
    fn text(&self, field: &str) -> &str {
        self.payload.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self, field: &str) -> u64 {
        self.payload.get(field).and_then(Value::as_u64).unwrap_or_default()
    }

    fn members(&self, field: &str) -> usize {
        self.payload.get(field).and_then(Value::as_object).map_or(0, |members| members.len())
    }

    fn id(&self, field: &str) -> String {
        self.style.id(self.text(field))
    }

    /// It came into being with this event.
    fn is_new(&self) -> bool {
        self.number("CreateIndex") == self.index
    }
}

fn node(row: &Row, kind: &str) -> String {
    let subject = format!("node {:?} ({})", row.text("Name"), row.id("ID"));
    let said = match kind {
        "NodeRegistration" if row.is_new() => "joined".to_string(),
        "NodeRegistration" => "described itself anew".to_string(),
        "NodeEligibility" => format!("is {} for scheduling", row.text("SchedulingEligibility")),
        "NodeDrain" if row.payload.get("DrainStrategy").is_none_or(Value::is_null) => {
            "is not drained any more".to_string()
        }
        "NodeDrain" => "is being drained".to_string(),
        "NodeDeregistration" => "was forgotten".to_string(),
        _ => format!("is {}", row.text("Status")),
    };
    let own = |message: &&Value| message["CreateIndex"].as_u64() == Some(row.index);
    let messages = row.payload.get("Events").and_then(Value::as_array);
    let newest = messages.and_then(|messages| messages.iter().rfind(own));
    match newest.and_then(|message| message["Message"].as_str()) {
        Some(message) => format!("{subject} {said}: {message}"),
        None => format!("{subject} {said}"),
    }
}

fn job(row: &Row, kind: &str, purged: bool) -> String {
    let subject = format!("job {:?}", row.text("ID"));
    match kind {
        _ if purged => format!("{subject} was purged"),
        "JobRegistered" => format!("{subject} was registered as version {}", row.number("Version")),
        "JobDeregistered" => format!("{subject} was stopped"),
        _ => format!("{subject} is {}", row.text("Status")),
    }
}

fn evaluation(row: &Row) -> String {
    let (id, job) = (row.id("ID"), row.text("JobID"));
    let why = described(row.text("StatusDescription"));
    format!("evaluation {id} of job {job:?} ({}) is {}{why}", row.text("TriggeredBy"), row.text("Status"))
}

fn allocation(row: &Row) -> String {
    let subject = format!("{} ({})", row.text("Name"), row.id("ID"));
    let node = row.text("NodeName");
    let (wanted, client) = (row.text("DesiredStatus"), row.text("ClientStatus"));
    if row.is_new() {
        return format!("{subject} was placed on {node}");
    }
    if wanted != "run" && !super::alloc::is_over(client) {
        let why = described(row.text("DesiredDescription"));
        return format!("{subject} on {node} is {client} and has to end{why}");
    }
    format!("{subject} on {node} is {client}{}", described(row.text("ClientDescription")))
}

fn deployment(row: &Row) -> String {
    let why = described(row.text("StatusDescription"));
    let (job, version) = (row.text("JobID"), row.number("JobVersion"));
    format!("deployment {} of job {job:?} version {version} is {}{why}", row.id("ID"), row.text("Status"))
}

fn csi_volume(row: &Row, kind: &str) -> String {
    let subject = format!("volume {:?} of plugin {:?}", row.text("ID"), row.text("PluginID"));
    match kind {
        "CSIVolumeDeregistered" => format!("{subject} was forgotten"),
        "CSIVolumeClaim" => {
            let (readers, writers) = (row.members("ReadAllocs"), row.members("WriteAllocs"));
            format!("{subject} is had by {writers} that may write and {readers} that may not")
        }
        _ if row.is_new() => format!("{subject} was registered"),
        _ => format!("{subject} was described anew"),
    }
}

fn host_volume(row: &Row, kind: &str) -> String {
    let subject = format!("volume {:?} ({}) of node {}", row.text("Name"), row.id("ID"), row.id("NodeID"));
    match kind {
        "HostVolumeDeleted" => format!("{subject} was forgotten"),
        "HostVolumeRegistered" if row.is_new() => format!("{subject} was registered"),
        "HostVolumeRegistered" => format!("{subject} was described anew"),
        _ => format!("{subject} is {}", row.text("State")),
    }
}

fn pool(row: &Row, kind: &str) -> String {
    let happened = if kind == "NodePoolDeleted" { "was deleted" } else { "was written" };
    format!("node pool {:?} {happened}", row.text("Name"))
}

fn plugin(row: &Row) -> String {
    let of = |kind: &str| {
        let (healthy, all) = (row.number(&format!("{kind}Healthy")), row.number(&format!("{kind}Expected")));
        format!("{healthy} of {all}")
    };
    format!(
        "plugin {:?} is healthy on {} nodes, with {} controllers",
        row.text("ID"),
        of("Nodes"),
        of("Controllers")
    )
}

fn described(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(topic: &str, kind: &str, payload: &str) -> String {
        let text = format!(
            r#"{{"Topic": "{topic}", "Type": "{kind}", "Key": "k", "Index": 7, "Payload": {payload}}}"#
        );
        let event: Event = model::document::input::from_slice(text.as_bytes()).unwrap();
        sentence(&OutputStyle::for_tests(), &event)
    }

    #[test]
    fn a_line_has_an_id_a_time_a_topic_and_a_sentence() {
        let style = OutputStyle::for_tests();
        let event = Event {
            topic: "Job".into(),
            kind: "JobRegistered".into(),
            namespace: "prod".into(),
            payload: [("Job".to_string(), serde_json::json!({"ID": "web", "Version": 3}))]
                .into_iter()
                .collect(),
            ..Event::default()
        };
        assert_eq!(
            line(&style, "7.1@5d16e7fe", style.now.0, &event),
            "7.1         2026-01-02T03:04:05Z  Job         job \"web\" was registered as version 3 [prod]\n"
        );
    }

    #[test]
    fn every_topic_has_plain_sentences() {
        let cases = [
            (
                "Node",
                "NodeRegistration",
                r#"{"Node": {"Name": "n1", "ID": "0123456789", "CreateIndex": 7}}"#,
                "node \"n1\" (01234567) joined",
            ),
            (
                "Node",
                "NodeStreamEvent",
                r#"{"Node": {"Name": "n1", "ID": "0123456789", "Status": "down",
                 "Events": [{"Message": "Node heartbeat missed", "CreateIndex": 7}]}}"#,
                "node \"n1\" (01234567) is down: Node heartbeat missed",
            ),
            (
                "Node",
                "NodeEligibility",
                r#"{"Node": {"Name": "n1", "ID": "0123456789", "SchedulingEligibility": "ineligible"}}"#,
                "node \"n1\" (01234567) is ineligible for scheduling",
            ),
            ("Job", "JobDeregistered", r#"{"Job": {"ID": "web"}}"#, "job \"web\" was stopped"),
            (
                "Job",
                "JobDeregistered",
                r#"{"Job": {"ID": "web"}, "Deleted": true}"#,
                "job \"web\" was purged",
            ),
            (
                "Evaluation",
                "EvaluationUpdated",
                r#"{"Evaluation": {"ID": "0123456789", "JobID": "web", "TriggeredBy": "node-update", "Status": "blocked",
                 "StatusDescription": "created to place remaining allocations"}}"#,
                "evaluation 01234567 of job \"web\" (node-update) is blocked: created to place remaining allocations",
            ),
            (
                "Allocation",
                "PlanResult",
                r#"{"Allocation": {"ID": "0123456789", "Name": "web.g[0]", "NodeName": "n1", "CreateIndex": 7}}"#,
                "web.g[0] (01234567) was placed on n1",
            ),
            (
                "Allocation",
                "PlanResult",
                r#"{"Allocation": {"ID": "0123456789", "Name": "web.g[0]", "NodeName": "n1", "DesiredStatus": "stop",
                 "ClientStatus": "running", "DesiredDescription": "alloc not needed due to job update"}}"#,
                "web.g[0] (01234567) on n1 is running and has to end: alloc not needed due to job update",
            ),
            (
                "Allocation",
                "AllocationUpdated",
                r#"{"Allocation": {"ID": "0123456789", "Name": "web.g[0]", "NodeName": "n1", "DesiredStatus": "run",
                 "ClientStatus": "failed", "ClientDescription": "Failed tasks"}}"#,
                "web.g[0] (01234567) on n1 is failed: Failed tasks",
            ),
            (
                "Deployment",
                "DeploymentStatusUpdate",
                r#"{"Deployment": {"ID": "0123456789", "JobID": "web", "JobVersion": 2, "Status": "paused",
                 "StatusDescription": "Deployment is paused"}}"#,
                "deployment 01234567 of job \"web\" version 2 is paused: Deployment is paused",
            ),
            (
                "CSIVolume",
                "CSIVolumeClaim",
                r#"{"Volume": {"ID": "data", "PluginID": "ebs", "ReadAllocs": {}, "WriteAllocs": {"a": null}}}"#,
                "volume \"data\" of plugin \"ebs\" is had by 1 that may write and 0 that may not",
            ),
            (
                "HostVolume",
                "NodeRegistration",
                r#"{"Volume": {"ID": "0123456789", "Name": "scratch", "NodeID": "9876543210", "State": "ready"}}"#,
                "volume \"scratch\" (01234567) of node 98765432 is ready",
            ),
            (
                "CSIPlugin",
                "NodeStreamEvent",
                r#"{"Plugin": {"ID": "ebs", "NodesHealthy": 1, "NodesExpected": 2}}"#,
                "plugin \"ebs\" is healthy on 1 of 2 nodes, with 0 of 0 controllers",
            ),
            (
                "NodePool",
                "NodePoolDeleted",
                r#"{"NodePool": {"Name": "gpu"}}"#,
                "node pool \"gpu\" was deleted",
            ),
        ];
        for (topic, kind, payload, expected) in cases {
            assert_eq!(said(topic, kind, payload), expected);
        }
    }
}

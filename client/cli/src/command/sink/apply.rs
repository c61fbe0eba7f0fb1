use api::EventSinkRequest;
use jobspec::config::Section;
use jobspec::{Diagnostics, Source};
use model::document::Duration;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::job_file;
use crate::layout;
use crate::output::write_out;

const JSON: Flag<bool> = Flag::switch("json", "The file is JSON: a Name, and a sink as the API takes it.");

pub(super) static COMMAND: Command = Command {
    name: "sink apply",
    aliases: &[],
    arguments: "<input>",
    summary: "Create or change a sink of the event stream.",
    details: "The input is a file with a sink block, or - for standard input. A sink that exists stays where it\n\
              is, and paused or parked if it is that.",
    flags: &[&[&JSON], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(apply(call))),
};

#[derive(serde::Deserialize)]
struct Named {
    #[serde(rename = "Name")]
    name: String,
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}

async fn apply(call: Call) -> Outcome {
    let path = call.one_argument()?;
    let source = job_file::read_source(path)?;
    let (name, wanted) = if call.args.switch(&JSON) { from_json(&source)? } else { from_hcl(&source)? };
    let sink = call.client()?.set_event_sink(&name, &wanted).await.doing("applying sink")?;
    write_out(layout::sink::block(&call.style(), &sink));
    Ok(0)
}

fn from_json(source: &Source) -> Result<(String, EventSinkRequest), Failure> {
    let invalid = |wrong: serde_json::Error| anyhow::anyhow!("the sink's file is not valid: {wrong}");
    let Named { name, rest } = serde_json::from_str(&source.text).map_err(invalid)?;
    Ok((name, serde_json::from_value(rest.into()).map_err(invalid)?))
}

fn from_hcl(source: &Source) -> Result<(String, EventSinkRequest), Failure> {
    let read = read(source);
    let read = read.map_err(|wrong| anyhow::anyhow!("the sink's file is not valid\n\n{wrong}"))?;
    let [sink] = <[(String, EventSinkRequest); 1]>::try_from(read)
        .map_err(|_| anyhow::anyhow!("{}: expected exactly one sink block", source.name))?;
    Ok(sink)
}

fn read(source: &Source) -> Result<Vec<(String, EventSinkRequest)>, Diagnostics> {
    let mut top = Section::parse(source)?;
    let sinks = top.sections("sink")?.into_iter().map(block).collect::<Result<_, _>>()?;
    top.finish()?;
    Ok(sinks)
}

fn block(mut section: Section) -> Result<(String, EventSinkRequest), Diagnostics> {
    let wanted = EventSinkRequest {
        kind: section.take("kind")?.unwrap_or_default(),
        url: section.take("url")?.unwrap_or_default(),
        signal: section.take("signal")?.unwrap_or_default(),
        address: section.take("address")?.unwrap_or_default(),
        subject: section.take("subject")?.unwrap_or_default(),
        tls: section.take("tls")?.unwrap_or_default(),
        transport: section.take("transport")?.unwrap_or_default(),
        facility: section.take("facility")?.unwrap_or_default(),
        app_name: section.take("app_name")?.unwrap_or_default(),
        max_bytes: section.take("max_bytes")?.unwrap_or_default(),
        max_files: section.take("max_files")?.unwrap_or_default(),
        secret_variable: section.take("secret_variable")?.unwrap_or_default(),
        secret_namespace: section.take("secret_namespace")?.unwrap_or_default(),
        max_attempts: section.take("max_attempts")?.unwrap_or_default(),
        timeout: section.take::<Duration>("timeout")?.unwrap_or_default(),
        from: section.take("from")?.unwrap_or_default(),
        topics: section.take::<Vec<String>>("topics")?.unwrap_or_default().into(),
        namespace: section.take("namespace")?.unwrap_or_default(),
        filter: section.take("filter")?.unwrap_or_default(),
    };
    let name = section.labels.first().cloned().unwrap_or_default();
    section.finish()?;
    Ok((name, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_is_read_from_its_block_and_from_json() {
        let text = "sink \"billing\" {\n  kind = \"webhook\"\n  url = \"https://example.com/\"\n  \
                    topics = [\"Job\"]\n  timeout = \"5s\"\n  max_attempts = 3\n}\n";
        let (name, read) = from_hcl(&Source::new("sink.hcl", text.to_string())).unwrap();
        assert_eq!((name.as_str(), read.kind.as_str(), read.max_attempts), ("billing", "webhook", 3));
        let json = r#"{"Name": "billing", "Kind": "webhook", "URL": "https://example.com/", "Topics": ["Job"],
            "Timeout": "5s", "MaxAttempts": 3}"#;
        assert_eq!(from_json(&Source::new("sink.json", json.to_string())).unwrap(), (name, read));
    }

    #[test]
    fn keys_of_other_kinds_are_read_too() {
        let text = "sink \"s\" {\n  kind = \"syslog\"\n  address = \"logs:601\"\n  transport = \"tls\"\n  \
                    facility = \"local3\"\n  app_name = \"prod\"\n  tls = true\n}\n";
        let (_, read) = from_hcl(&Source::new("sink.hcl", text.to_string())).unwrap();
        assert_eq!(
            (read.transport.as_str(), read.facility.as_str(), read.app_name.as_str()),
            ("tls", "local3", "prod")
        );
        assert!(read.tls);
    }

    #[test]
    fn what_a_collector_is_sent_is_read() {
        let text =
            "sink \"t\" {\n  kind = \"otlp\"\n  url = \"http://a/v1/traces\"\n  signal = \"traces\"\n}\n";
        let (_, read) = from_hcl(&Source::new("sink.hcl", text.to_string())).unwrap();
        assert_eq!((read.kind.as_str(), read.signal.as_str()), ("otlp", "traces"));
    }

    #[test]
    fn a_word_that_sinks_do_not_have_is_refused() {
        let text = "sink \"a\" {\n  kind = \"file\"\n  path = \"/etc/passwd\"\n}\n";
        assert!(from_hcl(&Source::new("sink.hcl", text.to_string())).is_err());
        let json = r#"{"Name": "a", "Kind": "file", "Path": "/etc/passwd"}"#;
        assert!(from_json(&Source::new("sink.json", json.to_string())).is_err());
    }
}

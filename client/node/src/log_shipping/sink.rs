//! Where output is sent to, and how that is written.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use base::Time;
use delivery::syslog::{self, Message, framed};
use delivery::{AddressRules, dial, otlp};
use model::document::Timestamp;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UdpSocket, UnixDatagram};
use tokio::time::timeout;

use super::tail::Stream;

/// How long a sink may take for some lines.
const SEND_WITHIN: Duration = Duration::from_secs(10);

/// The facility `local0`, as RFC 5424 counts.
const FACILITY: u8 = 16;

/// What an operator has named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkAddress {
    /// One JSON object a line is appended.
    File(PathBuf),
    /// RFC 5424, one message a datagram.
    SyslogUdp(String),
    /// The same, each message behind its length (RFC 6587).
    SyslogTcp(String),
    /// One message a datagram.
    SyslogUnix(PathBuf),
    /// The logs of OpenTelemetry in JSON, by POST.
    Otlp(String),
}

impl SinkAddress {
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<SinkAddress, String> {
        let path = |path: &str| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
        let host = |address: &str| {
            let address = address.strip_prefix("//")?;
            let (host, port) = address.rsplit_once(':')?;
            (!host.is_empty() && port.parse::<u16>().is_ok()).then(|| address.to_string())
        };
        let address = match text.split_once(':') {
            Some(("file", rest)) => path(rest).map(SinkAddress::File),
            Some(("syslog+unix", rest)) => path(rest).map(SinkAddress::SyslogUnix),
            Some(("syslog+udp", rest)) => host(rest).map(SinkAddress::SyslogUdp),
            Some(("syslog+tcp", rest)) => host(rest).map(SinkAddress::SyslogTcp),
            Some(("otlp+http" | "otlp+https", _)) => {
                let url = text.trim_start_matches("otlp+");
                reqwest::Url::parse(url)
                    .ok()
                    .filter(|url| url.has_host())
                    .map(|_| SinkAddress::Otlp(url.into()))
            }
            _ => None,
        };
        address.ok_or_else(|| {
            format!(
                "\"{text}\": expected file:/PATH, syslog+udp://HOST:PORT, syslog+tcp://HOST:PORT, syslog+unix:/PATH, \
                 otlp+http://HOST:PORT/v1/logs or otlp+https://HOST/v1/logs"
            )
        })
    }
}

/// Whose output it is.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    pub node: String,
    pub namespace: String,
    pub job: String,
    pub group: String,
    pub task: String,
    pub alloc_id: String,
}

#[derive(Debug)]
pub enum SendError {
    /// The same lines may be taken later.
    Unreached(String),
    /// They never will.
    Refused(String),
}

/// One sink, with the connection that it keeps.
#[derive(Debug)]
pub struct Sender {
    address: SinkAddress,
    tcp: Option<TcpStream>,
    http: Option<reqwest::Client>,
}

impl Sender {
    pub fn new(address: SinkAddress) -> Sender {
        Sender { address, tcp: None, http: None }
    }

    /// # Errors
    /// When the sink has not taken all of them; then it may have taken some.
    pub async fn send(
        &mut self,
        origin: &Origin,
        stream: Stream,
        lines: &[String],
        now: Time,
    ) -> Result<(), SendError> {
        let late = || SendError::Unreached("it did not answer in time".to_string());
        timeout(SEND_WITHIN, self.send_now(origin, stream, lines, now)).await.unwrap_or_else(|_| {
            self.tcp = None;
            Err(late())
        })
    }

    async fn send_now(
        &mut self,
        origin: &Origin,
        stream: Stream,
        lines: &[String],
        now: Time,
    ) -> Result<(), SendError> {
        let unreached = |error: std::io::Error| SendError::Unreached(error.to_string());
        let messages = || lines.iter().map(|line| message(origin, stream, line, now));
        match &self.address {
            SinkAddress::File(path) => {
                let (path, text) = (path.clone(), objects(origin, stream, lines, now));
                let written = tokio::task::spawn_blocking(move || {
                    let mut options = std::fs::OpenOptions::new();
                    options.append(true).create(true).mode(0o640).open(path)?.write_all(text.as_bytes())
                });
                written.await.unwrap_or_else(|error| Err(error.into())).map_err(unreached)
            }
            SinkAddress::SyslogUdp(address) => {
                let sent = async {
                    let to = tokio::net::lookup_host(address).await?.next();
                    let to = to.ok_or_else(|| std::io::Error::other("the host has no address"))?;
                    let local = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                    let socket = UdpSocket::bind(local).await?;
                    for message in messages() {
                        socket.send_to(message.as_bytes(), to).await?;
                    }
                    Ok(())
                };
                sent.await.map_err(unreached)
            }
            SinkAddress::SyslogUnix(path) => {
                let sent = async {
                    let socket = UnixDatagram::unbound()?;
                    for message in messages() {
                        socket.send_to(message.as_bytes(), path).await?;
                    }
                    Ok(())
                };
                sent.await.map_err(unreached)
            }
            SinkAddress::SyslogTcp(address) => {
                let framed: String = messages().map(|message| framed(&message)).collect();
                // A server that is gone says so before more is written, which would be lost.
                let open = self.tcp.take().and_then(|mut open| (!dial::is_closed(&mut open)).then_some(open));
                let mut connection = match open {
                    Some(open) => open,
                    None => TcpStream::connect(address).await.map_err(unreached)?,
                };
                connection.write_all(framed.as_bytes()).await.map_err(unreached)?;
                self.tcp = Some(connection);
                Ok(())
            }
            SinkAddress::Otlp(url) => {
                let url = url.clone();
                self.post(&url, &records(origin, stream, lines, now)).await
            }
        }
    }

    async fn post(&mut self, url: &str, body: &Value) -> Result<(), SendError> {
        let client = match &self.http {
            Some(client) => client.clone(),
            None => {
                let client = client().map_err(SendError::Unreached)?;
                self.http.insert(client).clone()
            }
        };
        let answer = client.post(url).json(body).send().await;
        let answer = answer.map_err(|error| SendError::Unreached(error.without_url().to_string()))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            // What the protocol has for "later".
            status if status.is_server_error() || matches!(status.as_u16(), 408 | 429) => {
                Err(SendError::Unreached(format!("it answered {status}")))
            }
            status => Err(SendError::Refused(format!("it answered {status}"))),
        }
    }
}

fn client() -> Result<reqwest::Client, String> {
    let trusted = tls::client::config_trusting(&[]).map_err(|error| format!("certificates: {error}"))?;
    // The operator of this very host has named the collector.
    dial::http_client(&AddressRules::anywhere(), trusted)
}

fn message(origin: &Origin, stream: Stream, line: &str, now: Time) -> String {
    let severity = match stream {
        Stream::Stdout => syslog::INFORMATION,
        Stream::Stderr => syslog::ERROR,
    };
    let message = Message {
        facility: FACILITY,
        severity,
        time: now,
        host: &origin.node,
        app: &origin.task,
        process: origin.alloc_id.get(..8).unwrap_or(&origin.alloc_id),
        kind: stream.name(),
        data: &fields(origin),
        text: line,
    };
    message.render()
}

fn fields(origin: &Origin) -> [(&'static str, &str); 4] {
    [
        ("namespace", &origin.namespace),
        ("job", &origin.job),
        ("group", &origin.group),
        ("alloc", &origin.alloc_id),
    ]
}

/// JSON, an object a line.
fn objects(origin: &Origin, stream: Stream, lines: &[String], now: Time) -> String {
    let time = Timestamp::from(now).to_string();
    let object = |line: &String| {
        let object = json!({
            "time": time, "node": origin.node, "namespace": origin.namespace, "job": origin.job, "group": origin.group,
            "task": origin.task, "alloc": origin.alloc_id, "stream": stream.name(), "line": line,
        });
        format!("{object}\n")
    };
    lines.iter().map(object).collect()
}

/// A request of OTLP for logs.
fn records(origin: &Origin, stream: Stream, lines: &[String], now: Time) -> Value {
    let resource = [
        ("service.name", origin.task.as_str()),
        ("service.namespace", &origin.job),
        ("service.instance.id", &origin.alloc_id),
        ("host.name", &origin.node),
        ("nomad.namespace", &origin.namespace),
        ("nomad.group", &origin.group),
    ];
    let (number, text) = match stream {
        Stream::Stdout => otlp::INFO,
        Stream::Stderr => otlp::ERROR,
    };
    let time = now.0.to_string();
    let record = |line: &String| {
        json!({
            "observedTimeUnixNano": time, "severityNumber": number, "severityText": text,
            "body": {"stringValue": line}, "attributes": [otlp::attribute("log.iostream", stream.name())],
        })
    };
    otlp::request(&resource, lines.iter().map(record).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_or_refused_by_what_was_expected() {
        let parse = SinkAddress::parse;
        assert_eq!(parse("file:/var/log/t"), Ok(SinkAddress::File("/var/log/t".into())));
        assert_eq!(parse("syslog+unix:/dev/log"), Ok(SinkAddress::SyslogUnix("/dev/log".into())));
        assert_eq!(parse("syslog+udp://[::1]:514"), Ok(SinkAddress::SyslogUdp("[::1]:514".into())));
        assert_eq!(parse("syslog+tcp://logs:601"), Ok(SinkAddress::SyslogTcp("logs:601".into())));
        assert_eq!(
            parse("otlp+http://h:4318/v1/logs"),
            Ok(SinkAddress::Otlp("http://h:4318/v1/logs".into()))
        );
        for wrong in ["", "file:log", "syslog+udp://logs", "syslog+tcp:logs:1", "http://h", "otlp+http:"] {
            assert!(parse(wrong).unwrap_err().contains("expected file:/PATH"), "{wrong}");
        }
    }

    #[test]
    fn a_message_of_syslog_is_one_whatever_the_names_are() {
        let origin = Origin {
            node: "n 1".into(),
            job: "a\"]\\b".into(),
            task: "web".into(),
            alloc_id: "5d16e7fe-8a2e".into(),
            ..Origin::default()
        };
        let message = message(&origin, Stream::Stderr, "it [failed]", Time(1_000_001_999));
        assert_eq!(
            message,
            "<131>1 1970-01-01T00:00:01.000001Z n1 web 5d16e7fe stderr [sojourn@32473 namespace=\"\" job=\"a\\\"\\]\\\\b\" \
             group=\"\" alloc=\"5d16e7fe-8a2e\"] it [failed]"
        );
    }
}

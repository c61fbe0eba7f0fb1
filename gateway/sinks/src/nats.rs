//! A message of NATS JetStream for each event, over the text protocol of its clients.

use bytes::BytesMut;
use keyring::Items;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::target::{Outgoing, Undelivered};

/// Items of the sink's variable.
const TOKEN: &str = "token";
const USER: &str = "user";
const PASSWORD: &str = "password";
/// Longest line or message that a server may send: it sends acknowledgements and nothing else.
const RECEIVED_MAX: usize = 64 << 10;

pub(crate) struct Nats {
    address: String,
    subject: String,
    connection: Option<Connection>,
}

struct Connection {
    stream: TcpStream,
    received: BytesMut,
    /// Where acknowledgements are sent to.
    inbox: String,
    /// Of messages that were sent: an acknowledgement of an earlier one is not that of this one.
    sent: u64,
    payload_max: usize,
}

/// What a server sends.
enum Frame {
    Info(Value),
    Ping,
    Error(String),
    Message { subject: String, status: Option<String>, payload: Vec<u8> },
    Other,
}

impl Nats {
    pub(crate) fn new(address: &str, subject: &str) -> Nats {
        Nats { address: address.to_string(), subject: subject.to_string(), connection: None }
    }

    pub(crate) fn disconnect(&mut self) {
        self.connection = None;
    }

    /// Sent with its id, by which JetStream knows it again, and done when the stream has it.
    pub(crate) async fn deliver(&mut self, event: &Outgoing, secret: &Items) -> Result<(), Undelivered> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.address, secret).await.map_err(Undelivered::Later)?,
        };
        // It stays away after an error: whatever comes over it may belong to what failed.
        connection.publish(&self.subject, event).await?;
        self.connection = Some(connection);
        Ok(())
    }
}

impl Connection {
    async fn open(address: &str, secret: &Items) -> Result<Connection, String> {
        let stream = TcpStream::connect(address).await.map_err(|error| format!("{address}: {error}"))?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| error.to_string())?;
        let inbox = format!("_INBOX.{:032x}", u128::from_le_bytes(random));
        let received = BytesMut::new();
        let mut connection = Connection { stream, received, inbox, sent: 0, payload_max: 0 };
        let Frame::Info(info) = connection.frame().await? else {
            return Err(format!("{address} is not a NATS server"));
        };
        if info["tls_required"] == true {
            return Err(format!("{address} wants TLS, which sinks of NATS do not have"));
        }
        if info["headers"] != true {
            return Err(format!("{address} does not take headers, by which it would know events again"));
        }
        connection.payload_max = info["max_payload"].as_u64().unwrap_or(1 << 20) as usize;
        let mut options = json!({
            "verbose": false, "pedantic": false, "headers": true, "no_responders": true, "name": "sojourn",
            "lang": "rust", "version": "1", "protocol": 1,
        });
        for (item, option) in [(TOKEN, "auth_token"), (USER, "user"), (PASSWORD, "pass")] {
            if let Some(value) = secret.get(item) {
                options[option] = value.clone().into();
            }
        }
        let hello = format!("CONNECT {options}\r\nSUB {}.* 1\r\nPING\r\n", connection.inbox);
        connection.send(hello.as_bytes()).await?;
        loop {
            match connection.frame().await? {
                Frame::Error(why) => return Err(why),
                // The answer to the ping: it has taken the options.
                Frame::Other => return Ok(connection),
                Frame::Ping => connection.send(b"PONG\r\n").await?,
                Frame::Info(_) | Frame::Message { .. } => {}
            }
        }
    }

    async fn publish(&mut self, subject: &str, event: &Outgoing) -> Result<(), Undelivered> {
        let headers = format!(
            "NATS/1.0\r\nNats-Msg-Id: {}\r\nContent-Type: application/cloudevents+json\r\n\r\n",
            event.id
        );
        let total = headers.len() + event.body.len();
        if total > self.payload_max {
            let why = format!("it takes messages of {} bytes, and this one has {total}", self.payload_max);
            return Err(Undelivered::Rejected(why));
        }
        self.sent += 1;
        let reply = format!("{}.{}", self.inbox, self.sent);
        let mut message =
            format!("HPUB {subject} {reply} {} {total}\r\n{headers}", headers.len()).into_bytes();
        message.extend_from_slice(&event.body);
        message.extend_from_slice(b"\r\n");
        self.send(&message).await.map_err(Undelivered::Later)?;
        loop {
            match self.frame().await.map_err(Undelivered::Later)? {
                Frame::Ping => self.send(b"PONG\r\n").await.map_err(Undelivered::Later)?,
                Frame::Error(why) => return Err(Undelivered::Later(why)),
                Frame::Message { subject: to, status, payload } if to == reply => {
                    return acknowledged(subject, status.as_deref(), &payload);
                }
                Frame::Info(_) | Frame::Message { .. } | Frame::Other => {}
            }
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.write_all(bytes).await.map_err(|error| error.to_string())
    }

    async fn frame(&mut self) -> Result<Frame, String> {
        let line = self.line().await?;
        let (word, rest) = line.split_once(' ').unwrap_or((line.as_str(), ""));
        Ok(match word.to_ascii_uppercase().as_str() {
            "INFO" => Frame::Info(serde_json::from_str(rest).map_err(|error| format!("INFO: {error}"))?),
            "PING" => Frame::Ping,
            "-ERR" => Frame::Error(rest.trim_matches('\'').to_string()),
            kind @ ("MSG" | "HMSG") => {
                let words: Vec<&str> = rest.split_ascii_whitespace().collect();
                let number = |text: Option<&&str>| text.and_then(|text| text.parse::<usize>().ok());
                let total = number(words.last()).filter(|total| *total <= RECEIVED_MAX);
                let total = total.ok_or_else(|| format!("not understood: {line}"))?;
                let headers = if kind == "HMSG" { number(words.iter().rev().nth(1)) } else { Some(0) };
                let headers = headers.filter(|headers| *headers <= total);
                let headers = headers.ok_or_else(|| format!("not understood: {line}"))?;
                let subject = words.first().copied().unwrap_or_default().to_string();
                let whole = self.take(total + 2).await?;
                let status = String::from_utf8_lossy(&whole[..headers]);
                let status = status.lines().next().and_then(|line| line.strip_prefix("NATS/1.0 "));
                let status = status.map(|status| status.trim().to_string());
                Frame::Message { subject, status, payload: whole[headers..total].to_vec() }
            }
            _ => Frame::Other,
        })
    }

    async fn line(&mut self) -> Result<String, String> {
        loop {
            if let Some(end) = self.received.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.received.split_to(end + 2);
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.received.len() > RECEIVED_MAX {
                return Err("it sent a line without an end".to_string());
            }
            self.read().await?;
        }
    }

    async fn take(&mut self, length: usize) -> Result<BytesMut, String> {
        while self.received.len() < length {
            self.read().await?;
        }
        Ok(self.received.split_to(length))
    }

    async fn read(&mut self) -> Result<(), String> {
        match self.stream.read_buf(&mut self.received).await {
            Ok(0) => Err("the connection was closed".to_string()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// What JetStream says of a message: that it has it, maybe for the second time, or why not.
fn acknowledged(subject: &str, status: Option<&str>, payload: &[u8]) -> Result<(), Undelivered> {
    if let Some(status) = status {
        return Err(Undelivered::Later(match status.split(' ').next() {
            Some("503") => format!("no stream of JetStream takes the subject {subject}"),
            _ => format!("it answered {status}"),
        }));
    }
    let said: Value = serde_json::from_slice(payload).unwrap_or_default();
    if let Some(why) = said["error"]["description"].as_str() {
        return Err(Undelivered::Later(why.to_string()));
    }
    match said["stream"].is_string() && said["seq"].is_u64() {
        true => Ok(()),
        false => Err(Undelivered::Later(format!("who answers on {subject} is not JetStream"))),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, BufReader};
    use tokio::net::TcpListener;

    use super::*;

    fn event() -> Outgoing {
        Outgoing { id: "13.0@9f3c2a71".into(), body: "{\"id\":1}".into() }
    }

    /// A server that answers one message with each of these, and returns what came before them.
    async fn serve(listener: TcpListener, answers: Vec<String>) -> String {
        let (stream, _) = listener.accept().await.unwrap();
        let (read, mut write) = stream.into_split();
        let mut lines = BufReader::new(read).lines();
        write.write_all(b"INFO {\"headers\":true,\"max_payload\":1024}\r\n").await.unwrap();
        let mut said = String::new();
        let mut answers = answers.into_iter();
        while let Some(line) = lines.next_line().await.unwrap() {
            said += &format!("{line}\n");
            if line == "PING" {
                write.write_all(b"PONG\r\n").await.unwrap();
            }
            if let Some(rest) = line.strip_prefix("HPUB sojourn.events ") {
                let reply = rest.split(' ').next().unwrap();
                let Some(answer) = answers.next() else { return said };
                // A ping in between, and the answer in two pieces.
                let whole = format!("PING\r\nMSG {reply} 1 {}\r\n{answer}\r\n", answer.len());
                let (first, second) = whole.as_bytes().split_at(whole.len() / 2);
                write.write_all(first).await.unwrap();
                write.flush().await.unwrap();
                write.write_all(second).await.unwrap();
            }
        }
        said
    }

    #[tokio::test]
    async fn an_event_has_arrived_when_the_stream_has_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answers = ["{\"stream\":\"S\",\"seq\":1}", "{\"stream\":\"S\",\"seq\":1,\"duplicate\":true}"];
        let refusal = "{\"error\":{\"code\":503,\"description\":\"no space\"}}";
        let answers = answers.into_iter().chain([refusal]).map(str::to_string).collect();
        let server = tokio::spawn(serve(listener, answers));
        let mut nats = Nats::new(&address, "sojourn.events");
        let secret = Items::from([("token".to_string(), "t0ken".to_string())]);
        assert_eq!(nats.deliver(&event(), &secret).await, Ok(()));
        assert_eq!(nats.deliver(&event(), &secret).await, Ok(()), "it has it already");
        let refused = nats.deliver(&event(), &secret).await;
        assert_eq!(refused, Err(Undelivered::Later("no space".into())));
        drop(nats);
        let said = server.await.unwrap();
        assert_eq!(said.matches("Nats-Msg-Id: 13.0@9f3c2a71\n").count(), 3, "{said}");
        assert!(said.contains("\"auth_token\":\"t0ken\"") && said.contains("\nPONG\n"), "{said}");
    }

    #[tokio::test]
    async fn what_no_server_takes_is_rejected_and_nobody_there_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = tokio::spawn(serve(listener, Vec::new()));
        let mut nats = Nats::new(&address, "sojourn.events");
        let large = Outgoing { body: vec![b'x'; 2048].into(), ..event() };
        let rejected = nats.deliver(&large, &Items::new()).await;
        assert!(matches!(rejected, Err(Undelivered::Rejected(_))), "{rejected:?}");
        drop(nats);
        server.await.unwrap();
        let nobody = Nats::new(&address, "sojourn.events").deliver(&event(), &Items::new()).await;
        assert!(matches!(nobody, Err(Undelivered::Later(_))), "{nobody:?}");
    }
}

//! A message of NATS JetStream for each event, over the text protocol of its clients.

use bytes::BytesMut;
use delivery::AddressRules;
use delivery::dial::{self, connect};
use keyring::Items;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::target::{Outgoing, Undelivered};
use crate::trust::Trust;

/// Items of the sink's variable.
const TOKEN: &str = "token";
const USER: &str = "user";
const PASSWORD: &str = "password";
/// Longest line or message that a server may send: it sends acknowledgements and nothing else.
const RECEIVED_MAX: usize = 64 << 10;

pub(crate) struct Nats {
    address: String,
    subject: String,
    /// Nothing is sent without TLS; where it is not set, what the server asks for.
    tls: bool,
    rules: AddressRules,
    /// What the connection was opened with.
    secret: Items,
    connection: Option<Connection>,
}

struct Connection {
    stream: dial::Connection,
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
    pub(crate) fn new(address: &str, subject: &str, tls: bool, rules: &AddressRules) -> Nats {
        let (address, subject, rules) = (address.to_string(), subject.to_string(), rules.clone());
        Nats { address, subject, tls, rules, secret: Items::new(), connection: None }
    }

    pub(crate) fn disconnect(&mut self) {
        self.connection = None;
    }

    /// Sent with its id, by which JetStream knows it again, and done when the stream has it.
    pub(crate) async fn deliver(&mut self, event: &Outgoing, secret: &Items) -> Result<(), Undelivered> {
        if self.secret != *secret {
            self.disconnect();
            self.secret = secret.clone();
        }
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.open(secret).await.map_err(Undelivered::Later)?,
        };
        // It stays away after an error: whatever comes over it may belong to what failed.
        connection.publish(&self.subject, event).await?;
        self.connection = Some(connection);
        Ok(())
    }

    /// The server speaks first, in the clear, and says whether it has TLS. What it says by then decides nothing else.
    async fn open(&self, secret: &Items) -> Result<Connection, String> {
        let address = &self.address;
        let mut stream = connect(address, &self.rules).await?;
        let mut received = BytesMut::new();
        let info = info(address, &mut stream, &mut received).await?;
        let mut connection = if self.tls || info["tls_required"] == true {
            if info["tls_required"] != true && info["tls_available"] != true {
                return Err(format!("{address} has no TLS, which this sink wants"));
            }
            if !received.is_empty() {
                return Err(format!("{address} says more before TLS than a NATS server does"));
            }
            let secured = dial::secured(stream, address, Trust::of(secret).config()?).await?;
            Connection::over(secured, received)?
        } else {
            Connection::over(Box::new(stream), received)?
        };
        if info["headers"] != true {
            return Err(format!("{address} does not take headers, by which it would know events again"));
        }
        connection.payload_max = info["max_payload"].as_u64().unwrap_or(1 << 20) as usize;
        connection.introduce(secret).await?;
        Ok(connection)
    }
}

/// The first line of a server.
async fn info(
    address: &str,
    stream: &mut (impl AsyncRead + Unpin),
    received: &mut BytesMut,
) -> Result<Value, String> {
    match frame(stream, received).await? {
        Frame::Info(info) => Ok(info),
        _ => Err(format!("{address} is not a NATS server")),
    }
}

impl Connection {
    fn over(stream: dial::Connection, received: BytesMut) -> Result<Connection, String> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| error.to_string())?;
        let inbox = format!("_INBOX.{:032x}", u128::from_le_bytes(random));
        Ok(Connection { stream, received, inbox, sent: 0, payload_max: 0 })
    }

    async fn introduce(&mut self, secret: &Items) -> Result<(), String> {
        let mut options = json!({
            "verbose": false, "pedantic": false, "headers": true, "no_responders": true, "name": "sojourn",
            "lang": "rust", "version": "1", "protocol": 1,
        });
        for (item, option) in [(TOKEN, "auth_token"), (USER, "user"), (PASSWORD, "pass")] {
            if let Some(value) = secret.get(item) {
                options[option] = value.clone().into();
            }
        }
        let hello = format!("CONNECT {options}\r\nSUB {}.* 1\r\nPING\r\n", self.inbox);
        self.send(hello.as_bytes()).await?;
        loop {
            match self.frame().await? {
                Frame::Error(why) => return Err(why),
                // The answer to the ping: it has taken the options.
                Frame::Other => return Ok(()),
                Frame::Ping => self.send(b"PONG\r\n").await?,
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
        let sent = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        sent.await.map_err(|error| error.to_string())
    }

    async fn frame(&mut self) -> Result<Frame, String> {
        frame(&mut self.stream, &mut self.received).await
    }
}

async fn frame(stream: &mut (impl AsyncRead + Unpin), received: &mut BytesMut) -> Result<Frame, String> {
    let line = line(stream, received).await?;
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
            while received.len() < total + 2 {
                read(stream, received).await?;
            }
            let whole = received.split_to(total + 2);
            let status = String::from_utf8_lossy(&whole[..headers]);
            let status = status.lines().next().and_then(|line| line.strip_prefix("NATS/1.0 "));
            let status = status.map(|status| status.trim().to_string());
            Frame::Message { subject, status, payload: whole[headers..total].to_vec() }
        }
        _ => Frame::Other,
    })
}

async fn line(stream: &mut (impl AsyncRead + Unpin), received: &mut BytesMut) -> Result<String, String> {
    loop {
        if let Some(end) = received.windows(2).position(|pair| pair == b"\r\n") {
            let line = received.split_to(end + 2);
            return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
        }
        if received.len() > RECEIVED_MAX {
            return Err("it sent a line without an end".to_string());
        }
        read(stream, received).await?;
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin), received: &mut BytesMut) -> Result<(), String> {
    match stream.read_buf(received).await {
        Ok(0) => Err("the connection was closed".to_string()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
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
        Outgoing { id: "13.0@9f3c2a71".into(), body: "{\"id\":1}".into(), ..Outgoing::default() }
    }

    fn plain(address: &str) -> Nats {
        Nats::new(address, "sojourn.events", false, &AddressRules::default())
    }

    /// A server that answers one message with each of these, and returns what came before them.
    async fn serve(listener: &TcpListener, answers: Vec<String>) -> String {
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
        let server = tokio::spawn(async move { serve(&listener, answers).await });
        let mut nats = plain(&address);
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
    async fn a_secret_that_was_replaced_is_used_from_the_next_event_on() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut nats = plain(&listener.local_addr().unwrap().to_string());
        let server = tokio::spawn(async move {
            let answers = || vec!["{\"stream\":\"S\",\"seq\":1}".to_string(); 3];
            (serve(&listener, answers()).await, serve(&listener, answers()).await)
        });
        let secret = |token: &str| Items::from([("token".to_string(), token.to_string())]);
        for token in ["0ld", "0ld", "n3w"] {
            assert_eq!(nats.deliver(&event(), &secret(token)).await, Ok(()));
        }
        drop(nats);
        let (first, second) = server.await.unwrap();
        assert_eq!((first.matches("0ld").count(), first.matches("HPUB").count()), (1, 2), "{first}");
        assert_eq!((second.matches("n3w").count(), second.matches("HPUB").count()), (1, 1), "{second}");
    }

    /// A server with TLS for `localhost`, which wants the same certificate of who comes. Gives its certificate and key in PEM, what
    /// came before TLS, and what came over it.
    async fn serve_tls(
        info: &'static str,
    ) -> (String, [String; 2], tokio::task::JoinHandle<(usize, String)>) {
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_string()]).unwrap();
        let pem = [own.cert.pem(), own.signing_key.serialize_pem()];
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
        let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(own.cert.der().clone()).unwrap();
        let clients = rustls::server::WebPkiClientVerifier::builder_with_provider(
            std::sync::Arc::new(roots),
            provider.clone(),
        );
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients.build().unwrap())
            .with_single_cert(vec![own.cert.der().clone()], key.into())
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("localhost:{}", listener.local_addr().unwrap().port());
        let task = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(info.as_bytes()).await.unwrap();
            let mut first = [0; 1];
            // What comes in the clear is the first byte of a handshake, or nothing.
            match stream.peek(&mut first).await.unwrap() {
                0 => return (0, String::new()),
                _ if first[0] != 0x16 => return (1, String::new()),
                _ => {}
            }
            let Ok(mut stream) = acceptor.accept(stream).await else { return (0, String::new()) };
            let (mut said, mut bytes) = (String::new(), [0; 4096]);
            while let Ok(read @ 1..) = stream.read(&mut bytes).await {
                said.push_str(&String::from_utf8_lossy(&bytes[..read]));
                if said.ends_with("PING\r\n") {
                    stream.write_all(b"PONG\r\n").await.unwrap();
                }
                if let Some((_, message)) =
                    said.split_once("HPUB sojourn.events ").filter(|_| said.ends_with("}\r\n"))
                {
                    let (reply, ack) = (message.split(' ').next().unwrap(), "{\"stream\":\"S\",\"seq\":1}");
                    let answer = format!("MSG {reply} 1 {}\r\n{ack}\r\n", ack.len());
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            }
            (0, said)
        });
        (address, pem, task)
    }

    fn items(pairs: &[(&str, &str)]) -> Items {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[tokio::test]
    async fn passwords_and_events_go_over_tls_alone_where_the_server_wants_it() {
        let info = "INFO {\"headers\":true,\"tls_required\":true,\"max_payload\":1024}\r\n";
        let (address, [certificate, key], task) = serve_tls(info).await;
        let secret = items(&[
            ("ca", &certificate),
            ("client_cert", &certificate),
            ("client_key", &key),
            ("user", "u"),
            ("password", "hidden"),
        ]);
        let mut nats = plain(&address);
        assert_eq!(nats.deliver(&event(), &secret).await, Ok(()));
        drop(nats);
        let (in_the_clear, said) = task.await.unwrap();
        assert_eq!(in_the_clear, 0);
        assert!(
            said.contains("\"pass\":\"hidden\"") && said.contains("Nats-Msg-Id: 13.0@9f3c2a71"),
            "{said}"
        );
        assert!(!said.contains("PRIVATE KEY"), "{said}");
    }

    #[tokio::test]
    async fn nothing_is_said_to_a_server_without_tls_or_with_a_certificate_of_somebody_else() {
        let without = "INFO {\"headers\":true,\"max_payload\":1024}\r\n";
        let (address, _, task) = serve_tls(without).await;
        let secret = items(&[("user", "u"), ("password", "hidden")]);
        let mut nats = Nats::new(&address, "sojourn.events", true, &AddressRules::default());
        let refused = nats.deliver(&event(), &secret).await;
        assert!(
            matches!(&refused, Err(Undelivered::Later(why)) if why.contains("has no TLS")),
            "{refused:?}"
        );
        assert_eq!(task.await.unwrap(), (0, String::new()));

        let with = "INFO {\"headers\":true,\"tls_available\":true,\"max_payload\":1024}\r\n";
        let (address, _, task) = serve_tls(with).await;
        let mut nats = Nats::new(&address, "sojourn.events", true, &AddressRules::default());
        let refused = nats.deliver(&event(), &secret).await;
        assert!(
            matches!(&refused, Err(Undelivered::Later(why)) if why.contains("certificate")),
            "{refused:?}"
        );
        assert_eq!(task.await.unwrap(), (0, String::new()));
    }

    #[tokio::test]
    async fn what_no_server_takes_is_rejected_and_nobody_there_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = tokio::spawn(async move { serve(&listener, Vec::new()).await });
        let mut nats = plain(&address);
        let large = Outgoing { body: vec![b'x'; 2048].into(), ..event() };
        let rejected = nats.deliver(&large, &Items::new()).await;
        assert!(matches!(rejected, Err(Undelivered::Rejected(_))), "{rejected:?}");
        drop(nats);
        server.await.unwrap();
        let nobody = plain(&address).deliver(&event(), &Items::new()).await;
        assert!(matches!(nobody, Err(Undelivered::Later(_))), "{nobody:?}");
    }
}

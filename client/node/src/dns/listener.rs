//! Questions over UDP and TCP.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::Rng;
use hickory_proto::op::{Message, ResponseCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::DnsSettings;
use super::answer::{self, Found, Question, Zone};
use super::directory::Directory;
use super::recursion::{Recursors, Transport};
use crate::context::Context;

/// Most questions over UDP that are worked on at once. Further ones get no answer: who asks tries again.
const QUERIES_MAX: usize = 256;

/// Questions, by what they came to.
const QUERIES: &str = "sojourn.client.dns.queries_total";

/// Most connections; further ones wait until one has ended.
const CONNECTIONS_MAX: usize = 64;

/// Largest question. Those of programs have less than 100 bytes; what is longer is closed, or cut and found invalid.
const QUESTION_BYTES_MAX: usize = 4096;

/// How long a connection may be silent, or slow.
const CONNECTION_WITHIN: Duration = Duration::from_secs(10);

/// After the listener has failed to accept or receive: files may have run out.
const FAILED_PAUSE: Duration = Duration::from_millis(100);

/// The sockets, which are there before the agent says that it has started.
#[derive(Debug)]
pub struct Listener {
    udp: UdpSocket,
    tcp: TcpListener,
    zone: Zone,
    recursors: Recursors,
}

impl Listener {
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn bind(settings: &DnsSettings) -> io::Result<Listener> {
        let zone = Zone::new(settings).map_err(|text| io::Error::new(io::ErrorKind::InvalidInput, text))?;
        let udp = UdpSocket::bind(settings.address).await?;
        let tcp = TcpListener::bind(SocketAddr::new(settings.address.ip(), udp.local_addr()?.port())).await?;
        Ok(Listener { udp, tcp, zone, recursors: Recursors::new(settings.recursors.clone()) })
    }

    /// Answers until it is dropped.
    pub async fn run(self, context: Arc<Context>) {
        let responder = Arc::new(Responder {
            zone: self.zone,
            recursors: self.recursors,
            rng: Mutex::new(Rng::stream(context.seed, "dns")),
            directory: Directory::new(Arc::clone(&context)),
            context,
        });
        tokio::join!(receive(Arc::new(self.udp), Arc::clone(&responder)), accept(self.tcp, responder));
    }
}

#[derive(Debug)]
struct Responder {
    context: Arc<Context>,
    zone: Zone,
    recursors: Recursors,
    directory: Directory,
    rng: Mutex<Rng>,
}

impl Responder {
    /// The answer as it is sent; `None` for what is no question, or cannot be answered.
    async fn respond(&self, bytes: &[u8], transport: Transport) -> Option<Vec<u8>> {
        let request = Message::from_vec(bytes).ok().filter(answer::is_question)?;
        let (result, reply) = match self.zone.question(&request) {
            Ok(Question::Own(asked)) => {
                let found = self.directory.find(asked).await;
                let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
                (result_of(&found), self.zone.answer(&request, found, &mut rng))
            }
            Ok(Question::OfOthers) => {
                // Not a guess: the number and the port are all that others have to find out.
                let id = self.rng.lock().unwrap_or_else(PoisonError::into_inner).next() as u16;
                if let Some(answer) = self.recursors.ask(&request, bytes, id, transport).await {
                    self.count("forwarded");
                    return Some(answer);
                }
                ("unanswered", self.zone.reply(&request, ResponseCode::ServFail))
            }
            Err(code) => ("refused", self.zone.reply(&request, code)),
        };
        self.count(result);
        let encoded = match transport {
            Transport::Udp => answer::datagram(&request, reply),
            Transport::Tcp => answer::encoded(&reply),
        };
        encoded.map_err(|error| tracing::debug!(error, "an answer of the DNS was not written")).ok()
    }

    fn count(&self, result: &str) {
        let labels = vec![("result", result.to_string())];
        self.context.counters.happened_to(QUERIES, labels, std::time::Instant::now());
    }
}

/// What was found, as the metric names it.
fn result_of(found: &Found) -> &'static str {
    match found {
        Found::Instances(_) | Found::Address(_) | Found::Name => "found",
        Found::Absent => "absent",
        Found::Unknown => "unknown",
    }
}

async fn receive(socket: Arc<UdpSocket>, responder: Arc<Responder>) {
    let free = Arc::new(Semaphore::new(QUERIES_MAX));
    let mut tasks = tokio::task::JoinSet::new();
    let mut bytes = vec![0; QUESTION_BYTES_MAX];
    loop {
        while tasks.try_join_next().is_some() {}
        let (length, from) = match socket.recv_from(&mut bytes).await {
            Ok(received) => received,
            Err(error) => {
                tracing::debug!(%error, "a question of the DNS was not received");
                sleep(FAILED_PAUSE).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&free).try_acquire_owned() else { continue };
        let (socket, responder, question) =
            (Arc::clone(&socket), Arc::clone(&responder), bytes[..length].to_vec());
        tasks.spawn(async move {
            if let Some(answer) = responder.respond(&question, Transport::Udp).await
                && let Err(error) = socket.send_to(&answer, from).await
            {
                tracing::debug!(%from, %error, "an answer of the DNS was not sent");
            }
            drop(permit);
        });
    }
}

async fn accept(listener: TcpListener, responder: Arc<Responder>) {
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        while tasks.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, from)) => {
                let responder = Arc::clone(&responder);
                tasks.spawn(async move {
                    if let Err(error) = converse(stream, &responder).await {
                        tracing::debug!(%from, %error, "a connection of the DNS has ended");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a connection of the DNS was not accepted");
                sleep(FAILED_PAUSE).await;
            }
        }
    }
}

/// One question after the other, each with its length before it.
async fn converse(mut stream: TcpStream, responder: &Responder) -> io::Result<()> {
    loop {
        let length = match timeout(CONNECTION_WITHIN, stream.read_u16()).await? {
            Ok(length) => usize::from(length),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        if length > QUESTION_BYTES_MAX {
            return Err(io::Error::other(format!("a question of {length} bytes")));
        }
        let mut question = vec![0; length];
        timeout(CONNECTION_WITHIN, stream.read_exact(&mut question)).await??;
        let Some(bytes) = responder.respond(&question, Transport::Tcp).await else {
            return Err(io::Error::other("not a question"));
        };
        let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
        timeout(CONNECTION_WITHIN, stream.write_all(&[&length.to_be_bytes()[..], &bytes].concat())).await??;
    }
}

//! Questions that are not about services, passed on to the resolvers that the operator names.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, ResponseCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Most resolvers that may be named: as many as `/etc/resolv.conf` has.
pub const RECURSORS_MAX: usize = 3;

/// Most questions that are passed on at the same time: fewer than are worked on in all, so that services are found while
/// no resolver answers. Further ones get `SERVFAIL`.
pub const FORWARDED_MAX: usize = 192;

/// How long one resolver may take before the next one is asked: with all of them less than programs wait.
const ANSWER_WITHIN: Duration = Duration::from_millis(1500);

/// Largest datagram there is.
const DATAGRAM_BYTES_MAX: usize = u16::MAX as usize;

/// How a question came; it is passed on in the same way, so that an answer that was cut is asked for again over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Udp,
    Tcp,
}

/// The resolvers, in the order in which they are asked.
#[derive(Debug)]
pub struct Recursors {
    addresses: Vec<SocketAddr>,
    free: Semaphore,
}

impl Recursors {
    pub fn new(addresses: Vec<SocketAddr>) -> Recursors {
        Recursors { addresses, free: Semaphore::new(FORWARDED_MAX) }
    }

    pub fn are_there(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// The answer of the first resolver that has one, as it is but for its number. One that fails or refuses is followed by
    /// the next; if all do, that is the answer. None when no resolver says anything in time, or too much is asked at once.
    ///
    /// `id` is what others have to guess who would answer in a resolver's place.
    pub async fn ask(
        &self,
        request: &Message,
        question: &[u8],
        id: u16,
        transport: Transport,
    ) -> Option<Vec<u8>> {
        let _permit = self.free.try_acquire().ok()?;
        let (own, mut question) = (question.get(..2)?.to_vec(), question.to_vec());
        question[..2].copy_from_slice(&id.to_be_bytes());
        let mut failed = None;
        for address in &self.addresses {
            let asked = async {
                match transport {
                    Transport::Udp => over_udp(*address, request, &question, id).await,
                    Transport::Tcp => over_tcp(*address, request, &question, id).await,
                }
            };
            let answer = timeout(ANSWER_WITHIN, asked).await.map_err(io::Error::from).and_then(|said| said);
            match answer {
                Ok((code, mut bytes)) => {
                    bytes[..2].copy_from_slice(&own);
                    if !matches!(code, ResponseCode::ServFail | ResponseCode::Refused) {
                        return Some(bytes);
                    }
                    failed = Some(bytes);
                }
                Err(error) => tracing::debug!(%address, %error, "a resolver has not answered"),
            }
        }
        failed
    }
}

/// Waits for the answer to this question: what else arrives is not heard.
async fn over_udp(
    address: SocketAddr,
    request: &Message,
    question: &[u8],
    id: u16,
) -> io::Result<(ResponseCode, Vec<u8>)> {
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).await?;
    socket.connect(address).await?;
    socket.send(question).await?;
    let mut bytes = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        let length = socket.recv(&mut bytes).await?;
        if let Some(code) = code_of(request, &bytes[..length], id) {
            return Ok((code, bytes[..length].to_vec()));
        }
    }
}

async fn over_tcp(
    address: SocketAddr,
    request: &Message,
    question: &[u8],
    id: u16,
) -> io::Result<(ResponseCode, Vec<u8>)> {
    let mut stream = TcpStream::connect(address).await?;
    let length = u16::try_from(question.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], question].concat()).await?;
    let mut bytes = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut bytes).await?;
    let code =
        code_of(request, &bytes, id).ok_or_else(|| io::Error::other("not the answer to the question"))?;
    Ok((code, bytes))
}

/// None for what is not the answer to this question.
fn code_of(request: &Message, bytes: &[u8], id: u16) -> Option<ResponseCode> {
    let answer = Message::from_vec(bytes).ok()?;
    let is_answer = answer.metadata.message_type == MessageType::Response && answer.metadata.id == id;
    // One that failed may leave the question out.
    let is_same = answer.queries.is_empty() || answer.queries == request.queries;
    (is_answer && is_same).then_some(answer.metadata.response_code)
}

/// A resolver as operators name it: an address, with a port unless that is 53.
///
/// # Errors
/// When it is neither, or leads back here.
pub fn check_recursor(text: &str, listener: SocketAddr) -> Result<SocketAddr, String> {
    let bare = text.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 53));
    let address = bare.or_else(|| text.parse().ok()).filter(|address: &SocketAddr| address.port() != 0);
    let Some(address) = address else {
        return Err(format!(
            "expected an IP address, with a port after a colon unless it is 53, not \"{text}\""
        ));
    };
    let is_here =
        address.ip() == listener.ip() || (listener.ip().is_unspecified() && address.ip().is_loopback());
    if address.port() == listener.port() && is_here {
        return Err(format!("\"{text}\" is this listener itself"));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use hickory_proto::op::Query;
    use hickory_proto::rr::{Name, RecordType};

    use super::*;

    fn request() -> Message {
        let mut request = Message::query();
        request.add_query(Query::query(Name::from_ascii("example.com.").unwrap(), RecordType::A));
        request
    }

    /// A resolver that answers with this code, if it answers.
    async fn resolver(code: Option<ResponseCode>) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut bytes = [0; 512];
            loop {
                let (length, from) = socket.recv_from(&mut bytes).await.unwrap();
                let Some(code) = code else { continue };
                let asked = Message::from_vec(&bytes[..length]).unwrap();
                let mut reply = Message::response(asked.metadata.id, asked.metadata.op_code);
                reply.metadata.response_code = code;
                reply.queries = asked.queries.clone();
                // First what somebody else might send: another number, another question.
                let mut wrong = reply.clone();
                wrong.metadata.id = asked.metadata.id.wrapping_add(1);
                socket.send_to(&wrong.to_vec().unwrap(), from).await.unwrap();
                wrong = reply.clone();
                wrong.queries[0].set_query_type(RecordType::MX);
                wrong.metadata.response_code = ResponseCode::NotZone;
                socket.send_to(&wrong.to_vec().unwrap(), from).await.unwrap();
                socket.send_to(&reply.to_vec().unwrap(), from).await.unwrap();
            }
        });
        address
    }

    async fn asked(codes: &[Option<ResponseCode>]) -> Option<Message> {
        let mut addresses = Vec::new();
        for code in codes {
            addresses.push(resolver(*code).await);
        }
        let (request, recursors) = (request(), Recursors::new(addresses));
        let question = request.to_vec().unwrap();
        let bytes = recursors.ask(&request, &question, 7, Transport::Udp).await?;
        let answer = Message::from_vec(&bytes).unwrap();
        assert_eq!(answer.metadata.id, request.metadata.id);
        Some(answer)
    }

    #[tokio::test]
    async fn the_first_resolver_that_has_an_answer_is_believed() {
        let of = |answer: Option<Message>| answer.map(|answer| answer.metadata.response_code);
        let (fails, refuses) = (Some(ResponseCode::ServFail), Some(ResponseCode::Refused));
        let (absent, good) = (Some(ResponseCode::NXDomain), Some(ResponseCode::NoError));
        assert_eq!(of(asked(&[fails, absent, good]).await), absent);
        assert_eq!(of(asked(&[None, good]).await), good, "one that is silent is given up");
        assert_eq!(of(asked(&[fails, refuses]).await), refuses);
        assert_eq!(of(asked(&[None]).await), None);
    }

    #[tokio::test]
    async fn no_more_than_so_many_questions_are_passed_on_at_once() {
        let recursors = Recursors::new(vec![resolver(Some(ResponseCode::NoError)).await]);
        let (request, taken) = (request(), FORWARDED_MAX as u32);
        let question = request.to_vec().unwrap();
        let permits = recursors.free.acquire_many(taken).await.unwrap();
        assert_eq!(recursors.ask(&request, &question, 7, Transport::Udp).await, None);
        drop(permits);
        assert!(recursors.ask(&request, &question, 7, Transport::Udp).await.is_some());
    }

    #[test]
    fn a_resolver_is_an_address_of_somebody_else() {
        let listener: SocketAddr = "127.0.0.1:53".parse().unwrap();
        for (text, expected) in
            [("10.0.0.53", "10.0.0.53:53"), ("10.0.0.53:5353", "10.0.0.53:5353"), ("fd00::1", "[fd00::1]:53")]
        {
            assert_eq!(check_recursor(text, listener).unwrap().to_string(), expected);
        }
        assert!(check_recursor("127.0.0.1:5353", listener).is_ok());
        for wrong in ["", "dns.example", "10.0.0.53:0", "127.0.0.1"] {
            assert!(check_recursor(wrong, listener).is_err(), "{wrong}");
        }
        assert!(check_recursor("127.0.0.1", "0.0.0.0:53".parse().unwrap()).is_err());
    }
}

//! A message of RFC 5424 for each event, in a datagram or behind its length over a connection.
//!
//! No receiver of syslog says that it has a message. So a message has arrived when it was given to the network, and what was
//! given to it since the last acknowledgement is sent again when the connection turns out to be broken.

use std::time::Duration;

use delivery::dial::{self, Connection};
use delivery::syslog::{DATAGRAM_MAX, INFORMATION, Message, framed};
use delivery::{AddressRules, dial::connect};
use keyring::Items;
use model::SyslogTransport;
use tokio::io::AsyncWriteExt;
use tokio::net::UdpSocket;
use tokio::time::sleep;

use crate::target::{Outgoing, Undelivered};
use crate::trust::Trust;

/// How long a receiver has to say that it is not there, before what was sent to it is acknowledged: a host that is there
/// does so within a round trip.
const SETTLE: Duration = Duration::from_millis(200);

pub(crate) struct Syslog {
    address: String,
    transport: SyslogTransport,
    facility: u8,
    app_name: String,
    rules: AddressRules,
    link: Option<Link>,
    /// Something was sent since it was last known that the other end is there.
    unsettled: bool,
}

enum Link {
    Datagrams(UdpSocket),
    Stream(Connection),
}

impl Syslog {
    pub(crate) fn new(
        address: &str,
        transport: SyslogTransport,
        facility: u8,
        app_name: &str,
        rules: &AddressRules,
    ) -> Syslog {
        let (address, app_name, rules) = (address.to_string(), app_name.to_string(), rules.clone());
        Syslog { address, transport, facility, app_name, rules, link: None, unsettled: false }
    }

    pub(crate) fn disconnect(&mut self) {
        self.link = None;
    }

    pub(crate) async fn deliver(&mut self, event: &Outgoing, secret: &Items) -> Result<(), Undelivered> {
        let message = self.message(event);
        if self.transport == SyslogTransport::Udp && message.len() > DATAGRAM_MAX {
            let why =
                format!("a datagram holds {DATAGRAM_MAX} bytes, and this message has {}", message.len());
            return Err(Undelivered::Rejected(why));
        }
        // One that was closed meanwhile says so before more is written.
        if self.link.as_mut().is_some_and(|link| !link.is_there()) {
            self.link = None;
            return Err(self.broken("the connection was closed".to_string()));
        }
        let mut link = match self.link.take() {
            Some(link) => link,
            // Given up half-way through a message.
            None if self.unsettled => return Err(self.broken("the connection was given up".to_string())),
            None => self.open(secret).await.map_err(Undelivered::Later)?,
        };
        self.unsettled = true;
        if let Err(why) = link.send(&message).await {
            return Err(self.broken(why));
        }
        self.link = Some(link);
        Ok(())
    }

    pub(crate) async fn flush(&mut self) -> Result<(), Undelivered> {
        if !self.unsettled {
            return Ok(());
        }
        sleep(SETTLE).await;
        if !self.link.as_mut().is_some_and(Link::is_there) {
            self.link = None;
            return Err(self.broken("the connection was closed after something was sent".to_string()));
        }
        self.unsettled = false;
        Ok(())
    }

    fn broken(&mut self, why: String) -> Undelivered {
        let why = format!("{}: {why}", self.address);
        match std::mem::take(&mut self.unsettled) {
            true => Undelivered::Lost(why),
            false => Undelivered::Later(why),
        }
    }

    async fn open(&self, secret: &Items) -> Result<Link, String> {
        let address = &self.address;
        Ok(match self.transport {
            SyslogTransport::Udp => {
                let to = dial::allowed(address, &self.rules).await?;
                let local = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let failed = |error: std::io::Error| format!("{address}: {error}");
                let socket = UdpSocket::bind(local).await.map_err(failed)?;
                socket.connect(to).await.map_err(failed)?;
                Link::Datagrams(socket)
            }
            SyslogTransport::Tcp => Link::Stream(Box::new(connect(address, &self.rules).await?)),
            SyslogTransport::Tls => {
                let tls = Trust::of(secret).config()?;
                let stream = connect(address, &self.rules).await?;
                Link::Stream(dial::secured(stream, address, tls).await?)
            }
        })
    }

    /// The same whenever and by whichever server it is sent: so it names none.
    fn message(&self, event: &Outgoing) -> String {
        let message = Message {
            facility: self.facility,
            severity: INFORMATION,
            time: event.time,
            host: "",
            app: &self.app_name,
            process: "",
            kind: event.kind,
            data: &[("id", &event.id), ("topic", event.topic), ("type", event.kind)],
            text: &String::from_utf8_lossy(&event.body),
        };
        message.render()
    }
}

impl Link {
    async fn send(&mut self, message: &str) -> Result<(), String> {
        match self {
            Link::Datagrams(socket) => {
                socket.send(message.as_bytes()).await.map(drop).map_err(|error| error.to_string())
            }
            Link::Stream(stream) => {
                let sent = async {
                    stream.write_all(framed(message).as_bytes()).await?;
                    stream.flush().await
                };
                sent.await.map_err(|error| error.to_string())
            }
        }
    }

    /// Nobody has said that the other end is gone.
    fn is_there(&mut self) -> bool {
        match self {
            Link::Datagrams(socket) => matches!(socket.take_error(), Ok(None)),
            Link::Stream(stream) => !dial::is_closed(stream),
        }
    }
}

#[cfg(test)]
mod tests {
    use base::Time;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;

    const MESSAGE: &str = "<134>1 1970-01-01T00:00:01Z - billing - JobRegistered \
                           [sojourn@32473 id=\"13.0@9f3c2a71\" topic=\"Job\" type=\"JobRegistered\"] {\"id\":1}";

    fn event() -> Outgoing {
        let (id, body) = ("13.0@9f3c2a71".into(), "{\"id\":1}".into());
        let time = Time(1_000_000_000);
        Outgoing { id, body, time, topic: "Job", kind: "JobRegistered", ..Outgoing::default() }
    }

    fn to(address: &str, transport: SyslogTransport) -> Syslog {
        Syslog::new(address, transport, 16, "billing", &AddressRules::default())
    }

    #[tokio::test]
    async fn a_datagram_is_a_message_and_one_that_is_too_long_never_arrives() {
        let receiver = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut sink = to(&receiver.local_addr().unwrap().to_string(), SyslogTransport::Udp);
        sink.deliver(&event(), &Items::new()).await.unwrap();
        let mut bytes = [0; 4096];
        let length = receiver.recv(&mut bytes).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes[..length]), MESSAGE);
        sink.flush().await.unwrap();
        let long = Outgoing { body: vec![b'x'; DATAGRAM_MAX].into(), ..event() };
        let rejected = sink.deliver(&long, &Items::new()).await;
        assert!(matches!(rejected, Err(Undelivered::Rejected(_))), "{rejected:?}");
    }

    #[tokio::test]
    async fn what_a_host_says_of_a_datagram_that_nobody_takes_is_noticed() {
        let receiver = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut sink = to(&receiver.local_addr().unwrap().to_string(), SyslogTransport::Udp);
        drop(receiver);
        sink.deliver(&event(), &Items::new()).await.unwrap();
        let lost = sink.flush().await;
        assert!(matches!(lost, Err(Undelivered::Lost(_))), "{lost:?}");
    }

    #[tokio::test]
    async fn what_a_connection_had_not_settled_is_lost_with_it_and_sent_again_over_another() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut sink = to(&listener.local_addr().unwrap().to_string(), SyslogTransport::Tcp);
        let framed = format!("{} {MESSAGE}", MESSAGE.len());
        sink.deliver(&event(), &Items::new()).await.unwrap();
        sink.deliver(&event(), &Items::new()).await.unwrap();
        let (mut receiver, _) = listener.accept().await.unwrap();
        let mut bytes = vec![0; framed.len() * 2];
        receiver.read_exact(&mut bytes).await.unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), framed.repeat(2));
        sink.flush().await.unwrap();
        sink.deliver(&event(), &Items::new()).await.unwrap();
        drop(receiver);
        let lost = sink.flush().await;
        assert!(matches!(lost, Err(Undelivered::Lost(_))), "{lost:?}");
        sink.deliver(&event(), &Items::new()).await.unwrap();
        assert!(listener.accept().await.is_ok(), "over a new connection");
        drop(listener);
        sink.disconnect();
        let lost = sink.deliver(&event(), &Items::new()).await;
        assert!(matches!(lost, Err(Undelivered::Lost(_))), "{lost:?}");
        let nobody = sink.deliver(&event(), &Items::new()).await;
        assert!(matches!(nobody, Err(Undelivered::Later(_))), "{nobody:?}");
    }
}

//! Connections to addresses that the rules allow, with TLS and without.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::FutureExt;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

use crate::address::AddressRules;

/// A connection, with TLS or without.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + Sync {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + Sync> Stream for T {}

pub type Connection = Box<dyn Stream>;

/// To the first address of `HOST:PORT` that is allowed and answers.
///
/// # Errors
/// Why there is none, with the address.
pub async fn connect(address: &str, rules: &AddressRules) -> Result<TcpStream, String> {
    let mut why = String::new();
    for to in addresses(address, rules).await? {
        match TcpStream::connect(to).await.and_then(|stream| stream.set_nodelay(true).map(|()| stream)) {
            Ok(stream) => return Ok(stream),
            Err(error) => why = error.to_string(),
        }
    }
    Err(format!("{address}: {why}"))
}

/// The first address of `HOST:PORT` that is allowed.
///
/// # Errors
/// Why there is none, with the address.
pub async fn allowed(address: &str, rules: &AddressRules) -> Result<SocketAddr, String> {
    Ok(addresses(address, rules).await?[0])
}

async fn addresses(address: &str, rules: &AddressRules) -> Result<Vec<SocketAddr>, String> {
    let found = lookup_host(address).await.map_err(|error| format!("{address}: {error}"))?;
    rules.allowed_of(found).map_err(|why| format!("{address}: {why}"))
}

/// The same connection with TLS: who is at the other end has to be the host of `HOST:PORT`.
///
/// # Errors
/// The handshake failed.
pub async fn secured(stream: TcpStream, address: &str, tls: ClientConfig) -> Result<Connection, String> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_string()).map_err(|error| format!("{host}: {error}"))?;
    let connected = TlsConnector::from(Arc::new(tls)).connect(name, stream).await;
    connected.map(|stream| Box::new(stream) as Connection).map_err(|error| format!("{address}: {error}"))
}

/// Whoever is at the other end has closed the connection: what was just written may be lost, and what follows would be. What
/// they have sent is read and dropped.
pub fn is_closed(stream: &mut (impl AsyncRead + Unpin)) -> bool {
    let mut dropped = [0; 1024];
    loop {
        match stream.read(&mut dropped).now_or_never() {
            None => return false,
            Some(Ok(0) | Err(_)) => return true,
            Some(Ok(_)) => {}
        }
    }
}

/// A client that connects where the rules allow it: by no proxy, and without following anybody elsewhere. An address that
/// stands in a URL itself is not looked up: [`check_host`].
///
/// # Errors
/// It cannot be made.
pub fn http_client(rules: &AddressRules, tls: ClientConfig) -> Result<reqwest::Client, String> {
    let builder = reqwest::Client::builder().no_proxy().redirect(Policy::none()).user_agent("Sojourn");
    let builder = builder.dns_resolver(Arc::new(Guarded(rules.clone())));
    builder.tls_backend_preconfigured(tls).build().map_err(|error| error.to_string())
}

/// # Errors
/// The host is an address that is not allowed.
pub fn check_host(url: &Url, rules: &AddressRules) -> Result<(), String> {
    let host = url.host_str().unwrap_or_default();
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => rules.check(address),
        Err(_) => Ok(()),
    }
}

struct Guarded(AddressRules);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let rules = self.0.clone();
        Box::pin(async move {
            let found = lookup_host((name.as_str(), 0)).await?;
            let good = rules.allowed_of(found).map_err(|why| format!("{}: {why}", name.as_str()))?;
            Ok(Box::new(good.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;
    use tokio::time::{sleep, timeout};

    use super::*;

    fn without_loopback() -> AddressRules {
        let deny = ["127.0.0.0/8", "::1/128"].map(|text| text.parse().unwrap()).to_vec();
        AddressRules { deny, ..AddressRules::default() }
    }

    #[tokio::test]
    async fn a_name_is_checked_by_what_it_stands_for() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let name = format!("localhost:{port}");
        assert!(connect(&name, &AddressRules::default()).await.is_ok());
        let why = connect(&name, &without_loopback()).await.unwrap_err();
        assert!(why.starts_with(&name) && why.contains("which server.sinks.deny refuses"), "{why}");
        assert!(allowed(&name, &without_loopback()).await.is_err());
        // Nobody has connected but the first.
        listener.accept().await.unwrap();
        assert!(timeout(Duration::from_millis(50), listener.accept()).await.is_err());
    }

    #[test]
    fn an_address_in_a_url_is_checked_however_it_is_written() {
        let rules = without_loopback();
        for url in
            ["http://127.0.0.1/", "http://2130706433/", "http://0x7f.1/", "http://[::ffff:127.0.0.1]:80/"]
        {
            assert!(check_host(&Url::parse(url).unwrap(), &rules).is_err(), "{url}");
        }
        assert_eq!(check_host(&Url::parse("http://example.com/").unwrap(), &rules), Ok(()));
    }

    #[tokio::test]
    async fn a_connection_is_closed_when_the_other_end_is_and_not_before() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut stream = connect(&address, &AddressRules::default()).await.unwrap();
        let (mut other, _) = listener.accept().await.unwrap();
        other.write_all(b"hello").await.unwrap();
        assert!(!is_closed(&mut stream));
        drop(other);
        let closed = async {
            while !is_closed(&mut stream) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(timeout(Duration::from_secs(60), closed).await.is_ok());
    }
}

use axum::routing::get;
use tls::TlsSettings;
use tls::client::ClientOptions;
use tokio::io::AsyncReadExt;

use super::*;

#[path = "../../tls/tests/certificates/mod.rs"]
mod certificates;
use certificates::Certificates;

const LIMIT: Duration = Duration::from_secs(20);

struct TestServer {
    address: std::net::SocketAddr,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

fn at_most(max: usize) -> AddressLimit {
    AddressLimit { max, ..AddressLimit::NONE }
}

async fn start(header_timeout: Duration) -> TestServer {
    let timeouts = Timeouts { header: header_timeout, ..Timeouts::default() };
    start_with(Connections { timeouts, ..Connections::new(None, AddressLimit::NONE) }).await
}

async fn start_with(connections: Connections) -> TestServer {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopping) = watch::channel(false);
    let router = axum::Router::new().route("/", get(async || "hello"));
    TestServer { address, stop, task: tokio::spawn(serve(listener, router, connections, stopping)) }
}

async fn all_of(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    tokio::time::timeout(LIMIT, stream.read_to_string(&mut text)).await.unwrap().unwrap();
    text
}

#[tokio::test]
async fn a_request_that_never_ends_is_closed() {
    let server = start(Duration::from_millis(50)).await;
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow").await.unwrap();
    let answer = all_of(&mut slow).await;
    assert!(!answer.contains("hello"), "{answer}");
    let mut quick = TcpStream::connect(server.address).await.unwrap();
    quick.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    assert!(all_of(&mut quick).await.ends_with("hello"));
}

#[tokio::test]
async fn a_connection_that_sends_nothing_is_closed() {
    let server = start(Duration::from_millis(50)).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    // How HTTP/2 begins, and "POST" too.
    let mut partial = TcpStream::connect(server.address).await.unwrap();
    partial.write_all(b"P").await.unwrap();
    assert_eq!(all_of(&mut silent).await, "");
    assert_eq!(all_of(&mut partial).await, "");
}

#[tokio::test]
async fn who_reads_nothing_of_an_endless_answer_is_disconnected() {
    let endless = || async {
        let chunks = std::iter::repeat_with(|| Ok::<_, io::Error>(vec![b'x'; 64 * 1024]));
        axum::body::Body::from_stream(futures_util::stream::iter(chunks))
    };
    let router = axum::Router::new().route("/", get(endless));
    let serve = |read: Duration| {
        let (caller, server) = tokio::io::duplex(4_096);
        let (stop, stopping) = watch::channel(false);
        let timeouts = Timeouts { read, ..Timeouts::default() };
        let peer = Peer::Caller([10, 0, 0, 1].into());
        let serving = tokio::spawn(serve_stream(server, peer, router.clone(), timeouts, stopping));
        (caller, serving, stop)
    };
    let (mut caller, serving, _stop) = serve(Duration::from_millis(50));
    caller.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    tokio::time::timeout(LIMIT, serving).await.expect("it is given up").unwrap();

    // Who reads slowly is not.
    let (mut caller, serving, _stop) = serve(LIMIT);
    caller.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut some = vec![0; 1_000_000];
    tokio::time::timeout(LIMIT, caller.read_exact(&mut some)).await.unwrap().unwrap();
    assert!(!serving.is_finished());
}

#[tokio::test]
async fn one_connection_too_many_of_an_address_gets_429() {
    let server = start_with(Connections::new(None, at_most(2))).await;
    let ask = async || {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut some = [0; 12];
        stream.read_exact(&mut some).await.unwrap();
        (stream, String::from_utf8(some.to_vec()).unwrap())
    };
    let (first, second, third) = (ask().await, ask().await, ask().await);
    assert_eq!([&*first.1, &second.1, &third.1], ["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 429"]);
    drop(first);
    let freed = async { while ask().await.1 != "HTTP/1.1 200" {} };
    tokio::time::timeout(LIMIT, freed).await.expect("a closed connection makes room");
}

#[test]
fn the_bound_does_not_count_for_proxies() {
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    let limit = AddressLimit::default();
    let bounds = ["10.0.0.1", "127.0.0.1", "::1", "::ffff:127.0.0.1"].map(|text| limit.of(ip(text)));
    assert_eq!(bounds, [100, 0, 0, 0]);
    let limit = AddressLimit { max: 7, proxies: vec!["10.1.0.0/16".parse().unwrap()] };
    let bounds = ["10.1.2.3", "10.2.0.0", "127.0.0.1"].map(|text| limit.of(ip(text)));
    assert_eq!(bounds, [0, 7, 7]);
}

#[tokio::test]
async fn only_agents_say_where_a_request_came_from() {
    let address: IpAddr = [10, 0, 0, 1].into();
    let cases = [
        (Peer::Caller(address), "10.9.9.9", "10.0.0.1"),
        (Peer::Agent(address), "10.9.9.9", "10.9.9.9"),
        (Peer::Agent(address), "nowhere", "10.0.0.1"),
        (Peer::Caller("::ffff:10.0.0.2".parse().unwrap()), "", "10.0.0.2"),
    ];
    for (peer, header, expected) in cases {
        let shown = async |request: axum::extract::Request| {
            let caller = *request.extensions().get::<CallerAddress>().unwrap();
            caller.0.unwrap().to_string()
        };
        let router = axum::Router::new().route("/", get(shown));
        let (mut caller, server) = tokio::io::duplex(4_096);
        let (_stop, stopping) = watch::channel(false);
        let serving = tokio::spawn(serve_stream(server, peer, router, Timeouts::default(), stopping));
        let request =
            format!("GET / HTTP/1.1\r\nHost: x\r\n{FORWARDED_FOR}: {header}\r\nConnection: close\r\n\r\n");
        caller.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::time::timeout(LIMIT, caller.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.ends_with(&format!("\r\n\r\n{expected}")), "{answer}");
        serving.await.unwrap();
    }
}

#[tokio::test]
async fn idle_connections_do_not_delay_the_end() {
    let server = start(HEADER_TIMEOUT).await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut some = [0; 15];
    idle.read_exact(&mut some).await.unwrap();
    server.stop.send_replace(true);
    tokio::time::timeout(LIMIT, server.task).await.unwrap().unwrap();
}

fn agent(certificates: &Certificates, verify_https_client: bool) -> Arc<AgentTls> {
    let settings = TlsSettings { http: true, verify_https_client, ..certificates.of("server") };
    Arc::new(AgentTls::load(&settings, "global", true).unwrap())
}

/// A caller who trusts the authority and shows nothing.
fn nobody(certificates: &Certificates) -> ClientOptions {
    ClientOptions { ca_cert: certificates.path("ca.pem"), ..ClientOptions::default() }
}

/// A caller who trusts the authority, and shows the certificate of a role.
fn caller(certificates: &Certificates, role: &str) -> ClientOptions {
    let tls = certificates.of(role);
    ClientOptions {
        client_cert: tls.cert_file.unwrap(),
        client_key: tls.key_file.unwrap(),
        ..nobody(certificates)
    }
}

/// What a caller reads, or why it reads nothing.
async fn ask(address: std::net::SocketAddr, options: &ClientOptions) -> io::Result<String> {
    let connector = tokio_rustls::TlsConnector::from(Arc::new(tls::client::config(options).unwrap()));
    let stream = TcpStream::connect(address).await?;
    let mut stream = connector.connect("localhost".try_into().unwrap(), stream).await?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
    stream.flush().await?;
    let mut text = String::new();
    let read = tokio::time::timeout(LIMIT, stream.read_to_string(&mut text)).await.unwrap();
    // Who ends without a goodbye has still said everything.
    if text.is_empty() { read.map(|_| text) } else { Ok(text) }
}

#[tokio::test]
async fn an_encrypted_request_is_answered() {
    let certificates = Certificates::make();
    let server = start_with(Connections::new(Some(agent(&certificates, false)), AddressLimit::NONE)).await;
    let answer = ask(server.address, &nobody(&certificates)).await.unwrap();
    assert!(answer.ends_with("hello"), "{answer}");
    let other = Certificates::make();
    let stranger = ask(server.address, &nobody(&other)).await.unwrap_err();
    assert!(stranger.to_string().contains("UnknownIssuer"), "{stranger}");
}

#[tokio::test]
async fn a_request_without_tls_gets_a_readable_400() {
    let certificates = Certificates::make();
    let server = start_with(Connections::new(Some(agent(&certificates, false)), AddressLimit::NONE)).await;
    let mut plain = TcpStream::connect(server.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let answer = all_of(&mut plain).await;
    assert!(answer.starts_with("HTTP/1.0 400 "), "{answer}");
    assert!(answer.ends_with("Client sent an HTTP request to an HTTPS server.\n"), "{answer}");
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_closed() {
    let certificates = Certificates::make();
    let connections = Connections::new(Some(agent(&certificates, false)), AddressLimit::NONE);
    let quick = Connections { handshake_timeout: Duration::from_millis(50), ..connections };
    let server = start_with(quick).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut half = TcpStream::connect(server.address).await.unwrap();
    half.write_all(&[TLS_HANDSHAKE, 3, 1]).await.unwrap();
    assert_eq!((all_of(&mut silent).await, all_of(&mut half).await), (String::new(), String::new()));
}

#[tokio::test]
async fn callers_need_a_certificate_where_that_is_asked_for() {
    let certificates = Certificates::make();
    let server = start_with(Connections::new(Some(agent(&certificates, true)), AddressLimit::NONE)).await;
    assert!(ask(server.address, &nobody(&certificates)).await.is_err());
    let answer = ask(server.address, &caller(&certificates, "cli")).await.unwrap();
    assert!(answer.ends_with("hello"), "{answer}");
    let other = Certificates::make();
    let stranger = ClientOptions { ca_cert: certificates.path("ca.pem"), ..caller(&other, "server") };
    assert!(ask(server.address, &stranger).await.is_err());
}

#[tokio::test]
async fn one_encrypted_connection_too_many_gets_429() {
    let certificates = Certificates::make();
    let server = start_with(Connections::new(Some(agent(&certificates, false)), at_most(1))).await;
    let _held = TcpStream::connect(server.address).await.unwrap();
    let answer = ask(server.address, &nobody(&certificates)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
}

#[tokio::test]
async fn new_certificates_count_without_dropping_a_connection() {
    let certificates = Certificates::make();
    let tls = agent(&certificates, false);
    let server = start_with(Connections::new(Some(tls.clone()), AddressLimit::NONE)).await;
    let options = nobody(&certificates);
    let connector = tokio_rustls::TlsConnector::from(Arc::new(tls::client::config(&options).unwrap()));
    let stream = TcpStream::connect(server.address).await.unwrap();
    let mut open = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();

    let other = Certificates::make();
    let settings = TlsSettings { http: true, ..other.of("server") };
    assert!(tls.reload(&settings).unwrap());
    assert!(!tls.reload(&settings).unwrap(), "nothing has changed since");
    other.write("server-key.pem", "no key");
    let broken = tls.reload(&settings).unwrap_err();
    assert_eq!(broken.key, "key_file");

    assert!(ask(server.address, &nobody(&other)).await.unwrap().ends_with("hello"));
    open.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    open.flush().await.unwrap();
    let mut text = String::new();
    let _ended = tokio::time::timeout(LIMIT, open.read_to_string(&mut text)).await.unwrap();
    assert!(text.ends_with("hello"), "{text}");
}

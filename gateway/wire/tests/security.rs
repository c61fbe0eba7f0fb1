//! What a connection proves, and what the port does with those that prove nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tls::{AgentTls, TlsSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wire::messages::Empty;
use wire::{Bytes, Connection, Handler, Limits, Opening, PeerIdentity, RemoteError, RpcError, RpcSecurity};

use crate::certificates::Certificates;

const WAIT: Duration = Duration::from_secs(120);

/// Answers every call with what its connection has proved.
struct Identity;

impl Handler for Identity {
    async fn call(&self, connection: &Connection, _: &str, _: Bytes) -> Result<Vec<u8>, RemoteError> {
        Err(format!("{:?}", connection.identity()).into())
    }

    async fn stream(&self, connection: &Connection, _: &str, opening: Opening) -> Result<(), RpcError> {
        opening.refuse(format!("{:?}", connection.identity())).await
    }
}

async fn serve(security: &RpcSecurity) -> SocketAddr {
    let limits = Limits { handshake: Duration::from_secs(2), ..Limits::SERVER };
    serve_with(security, limits).await
}

async fn serve_with(security: &RpcSecurity, limits: Limits) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(wire::serve(listener, security.clone(), Arc::new(Identity), limits));
    address
}

/// What the port takes a caller for, in a call and a stream, and what the caller takes the port for. `None` where no call
/// gets through.
async fn known_as(address: SocketAddr, security: &RpcSecurity) -> Option<(String, PeerIdentity)> {
    let connection = wire::dial(address, security, Arc::new(Identity), Limits::NODE, WAIT).await.ok()?;
    let in_call = connection.call::<_, Empty>("Any", &Empty {}, WAIT).await.unwrap_err();
    let RpcError::Remote(in_call) = in_call else { return None };
    let in_stream = connection.open_stream("Any", WAIT).await.err().unwrap();
    assert_eq!(in_stream.to_string(), in_call.to_string());
    Some((in_call.message, connection.identity()))
}

fn certified(settings: TlsSettings, is_server: bool) -> RpcSecurity {
    let settings = TlsSettings { rpc: true, verify_server_hostname: true, ..settings };
    RpcSecurity::new(Some(Arc::new(AgentTls::load(&settings, "global", is_server).unwrap())), "global")
}

fn keyed(key: u8) -> RpcSecurity {
    keyed_in("global", key)
}

fn keyed_in(region: &str, key: u8) -> RpcSecurity {
    let security = RpcSecurity::new(None, region);
    security.keys().replace([&[key; 32][..]]);
    security
}

#[tokio::test]
async fn certificates_say_who_is_there() {
    let certificates = Certificates::make();
    let server = certified(certificates.of("server"), true);
    let address = serve(&server).await;
    let as_server = known_as(address, &server).await;
    assert_eq!(as_server, Some(("Server".to_string(), PeerIdentity::Server)));
    let as_client = known_as(address, &certified(certificates.of("client"), false)).await;
    assert_eq!(as_client, Some(("Client".to_string(), PeerIdentity::Server)));
    for stranger in [
        certified(Certificates::make().of("server"), true),
        certified(certificates.of("cli"), false),
        RpcSecurity::default(),
        keyed(1),
    ] {
        assert_eq!(known_as(address, &stranger).await, None, "{stranger:?}");
    }
}

#[tokio::test]
async fn servers_of_other_regions_are_known_as_such() {
    let certificates = Certificates::make();
    let settings = TlsSettings { rpc: true, ..certificates.of("server.eu") };
    let of_eu = RpcSecurity::new(Some(Arc::new(AgentTls::load(&settings, "eu", true).unwrap())), "eu");
    let with_key = RpcSecurity::new(None, "eu");
    with_key.keys().replace([&[1; 32][..]]);
    let (certified, keyed) =
        (serve(&certified(certificates.of("server"), true)).await, serve(&keyed_in("global", 1)).await);
    for (address, foreign) in [(certified, of_eu), (keyed, with_key)] {
        let known = known_as(address, &foreign.towards("global")).await;
        assert_eq!(known, Some(("ForeignServer".to_string(), PeerIdentity::ForeignServer)));
        assert_eq!(known_as(address, &foreign).await, None);
        assert_eq!(known_as(address, &foreign.towards("asia")).await, None);
    }
}

#[tokio::test]
async fn shared_keys_prove_servers_and_leave_the_port_open_to_nodes() {
    let address = serve(&keyed(1)).await;
    assert_eq!(known_as(address, &keyed(1)).await, Some(("Server".to_string(), PeerIdentity::Server)));
    assert_eq!(known_as(address, &keyed(2)).await, None);
    let node = known_as(address, &RpcSecurity::default()).await;
    assert_eq!(node, Some(("Unproven".to_string(), PeerIdentity::Unproven)));
    // Where there is no key, nobody can show one.
    assert_eq!(known_as(serve(&RpcSecurity::default()).await, &keyed(1)).await, None);
}

#[tokio::test]
async fn during_an_upgrade_both_are_served_and_dialed() {
    let certificates = Certificates::make();
    let upgrading = TlsSettings { rpc_upgrade_mode: true, ..certificates.of("server") };
    let upgrading = certified(upgrading, true);
    let address = serve(&upgrading).await;
    assert_eq!(known_as(address, &RpcSecurity::default()).await.unwrap().0, "Unproven");
    assert_eq!(known_as(address, &upgrading).await.unwrap().0, "Server");
    let before = serve(&RpcSecurity::default()).await;
    assert_eq!(known_as(before, &upgrading).await.unwrap().0, "Unproven");
    // With a key it falls back to that, and not to nothing.
    upgrading.keys().replace([&[1; 32][..]]);
    assert_eq!(known_as(serve(&keyed(1)).await, &upgrading).await.unwrap().0, "Server");
    assert_eq!(known_as(before, &upgrading).await, None);
}

#[tokio::test]
async fn tls_within_tls_and_halves_of_handshakes_are_closed() {
    let quick = Limits { handshake: Duration::from_millis(50), ..Limits::SERVER };
    let certificates = Certificates::make();
    let server = certified(certificates.of("server"), true);
    let address = serve_with(&server, quick).await;
    for sent in [&[0x04][..], &[0x04, 0x16, 3, 1], &[0x53], &[0x06], &[]] {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(sent).await.unwrap();
        let mut rest = Vec::new();
        let read = tokio::time::timeout(WAIT, socket.read_to_end(&mut rest)).await.expect("it is closed");
        assert!(read.is_err() || rest.len() < 16, "{sent:?}: {rest:?}");
    }
    let address = serve(&server).await;
    let settings = TlsSettings { rpc: true, ..certificates.of("client") };
    let tls = AgentTls::load(&settings, "global", false).unwrap();
    for inner in [0x04, 0x53, 0x02, 0x47] {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_u8(0x04).await.unwrap();
        let (mut stream, _) = tls.connect_rpc(socket).await.unwrap();
        stream.write_u8(inner).await.unwrap();
        stream.flush().await.unwrap();
        let read = tokio::time::timeout(WAIT, stream.read(&mut [0; 8])).await.expect("it is closed");
        assert!(!matches!(read, Ok(1..)), "{inner:#x}");
    }
}

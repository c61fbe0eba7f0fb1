//! Two agents with certificates, over a connection in memory.

mod certificates;

use std::sync::Arc;

use certificates::Certificates;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tls::{AgentTls, MinVersion, PeerIdentity, TlsSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn rpc(settings: TlsSettings) -> TlsSettings {
    TlsSettings { rpc: true, ..settings }
}

fn load(settings: TlsSettings, is_server: bool) -> AgentTls {
    AgentTls::load(&rpc(settings), "global", is_server).unwrap()
}

/// What each end has found out about the other, once a byte has gone each way; `None` for an end that saw no byte.
async fn meet(dialing: &AgentTls, accepting: &AgentTls) -> (Option<PeerIdentity>, Option<PeerIdentity>) {
    let (near, far) = tokio::io::duplex(64 << 10);
    let dial = async {
        let (mut stream, identity) = dialing.connect_rpc(near).await.ok()?;
        stream.write_all(b"?").await.ok()?;
        stream.flush().await.ok()?;
        stream.read_u8().await.ok().map(|_| identity)
    };
    let accept = async {
        let (mut stream, identity) = accepting.accept_rpc(far).await.ok()?;
        stream.read_u8().await.ok()?;
        stream.write_all(b"!").await.ok()?;
        stream.flush().await.ok().map(|()| identity)
    };
    tokio::join!(dial, accept)
}

#[tokio::test]
async fn each_end_knows_the_role_of_the_other() {
    let certificates = Certificates::make();
    let (server, client) = (load(certificates.of("server"), true), load(certificates.of("client"), false));
    assert_eq!(meet(&client, &server).await, (Some(PeerIdentity::Server), Some(PeerIdentity::Client)));
    assert_eq!(meet(&server, &server).await, (Some(PeerIdentity::Server), Some(PeerIdentity::Server)));
}

#[tokio::test]
async fn certificates_of_another_authority_are_refused_at_both_ends() {
    let (certificates, others) = (Certificates::make(), Certificates::make());
    let (server, other) = (load(certificates.of("server"), true), load(others.of("server"), true));
    assert_eq!(meet(&other, &server).await, (None, None));
    assert_eq!(meet(&server, &other).await, (None, None));
}

#[tokio::test]
async fn a_certificate_without_a_role_proves_none() {
    let certificates = Certificates::make();
    let (server, cli) = (certificates.of("server"), load(certificates.of("cli"), false));
    let lax = load(server.clone(), true);
    assert_eq!(meet(&cli, &lax).await, (Some(PeerIdentity::Server), Some(PeerIdentity::Unproven)));
    let strict = load(TlsSettings { verify_server_hostname: true, ..server }, true);
    assert_eq!(meet(&cli, &strict).await, (None, None));
    // Who dials looks too, servers always.
    let node = certificates.of("client");
    let impostor = load(certificates.of("client"), false);
    assert_eq!(meet(&load(node.clone(), false), &impostor).await.0, Some(PeerIdentity::Client));
    let strict = load(TlsSettings { verify_server_hostname: true, ..node }, false);
    assert_eq!(meet(&strict, &impostor).await.0, None);
    assert_eq!(meet(&lax, &impostor).await.0, None);
}

#[tokio::test]
async fn the_role_is_that_of_one_region() {
    let certificates = Certificates::make();
    let here = load(certificates.of("server"), true);
    let settings = rpc(TlsSettings { verify_server_hostname: true, ..certificates.of("server") });
    let elsewhere = AgentTls::load(&settings, "eu", false).unwrap();
    assert_eq!(meet(&elsewhere, &here).await.0, None);
    let refused = AgentTls::load(&settings, "eu", true).unwrap_err();
    assert_eq!(refused.key, "cert_file");
    assert!(refused.why.contains("server.eu.nomad"), "{}", refused.why);
}

#[tokio::test]
async fn a_server_of_another_region_is_known_by_its_certificate() {
    let certificates = Certificates::make();
    let strict = |settings| rpc(TlsSettings { verify_server_hostname: true, ..settings });
    let here = AgentTls::load(&strict(certificates.of("server")), "global", true).unwrap();
    let eu = AgentTls::load(&strict(certificates.of("server.eu")), "eu", true).unwrap();
    let node = AgentTls::load(&strict(certificates.of("client.eu")), "eu", false).unwrap();
    let from = async |dialing: &AgentTls, region: &str| {
        let (near, far) = tokio::io::duplex(64 << 10);
        let dial = async {
            let mut stream = dialing.connect_rpc_of(region, near).await.ok()?;
            stream.write_all(b"?").await.ok()?;
            stream.flush().await.ok()
        };
        let accept = async {
            let (mut stream, identity) = here.accept_rpc(far).await.ok()?;
            stream.read_u8().await.ok().map(|_| identity)
        };
        tokio::join!(dial, accept).1
    };
    assert_eq!(from(&eu, "global").await, Some(PeerIdentity::ForeignServer));
    assert_eq!(from(&eu, "asia").await, None, "the server that answers is one of a third region");
    assert_eq!(from(&node, "global").await, None, "a node of another region has no business here");
}

#[tokio::test]
async fn a_reload_counts_for_new_connections_only() {
    let (certificates, others) = (Certificates::make(), Certificates::make());
    let (settings, client) = (rpc(certificates.of("server")), load(certificates.of("client"), false));
    let server = AgentTls::load(&settings, "global", true).unwrap();
    let (near, far) = tokio::io::duplex(64 << 10);
    let (dialed, accepted) = tokio::join!(client.connect_rpc(near), server.accept_rpc(far));
    let (mut near, mut far) = (dialed.unwrap().0, accepted.unwrap().0);

    others.sign("server");
    for name in ["ca.pem", "server.pem", "server-key.pem"] {
        std::fs::copy(others.path(name), certificates.path(name)).unwrap();
    }
    assert!(server.reload(&settings).unwrap());
    assert!(!server.reload(&settings).unwrap(), "nothing has changed since");
    assert_eq!(meet(&client, &server).await, (None, None));
    assert_eq!(meet(&load(others.of("client"), false), &server).await.1, Some(PeerIdentity::Client));
    near.write_all(b"still here").await.unwrap();
    near.flush().await.unwrap();
    let mut text = [0; 10];
    far.read_exact(&mut text).await.unwrap();
    assert_eq!(&text, b"still here");

    // What cannot be used changes nothing.
    others.write("server-key.pem", "no key");
    std::fs::copy(others.path("server-key.pem"), certificates.path("server-key.pem")).unwrap();
    assert_eq!(server.reload(&settings).unwrap_err().key, "key_file");
    assert_eq!(meet(&load(others.of("client"), false), &server).await.1, Some(PeerIdentity::Client));
}

#[tokio::test]
async fn an_older_version_is_refused_where_the_newest_is_asked_for() {
    let certificates = Certificates::make();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificates.path("ca.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let old = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let old = tokio_rustls::TlsConnector::from(Arc::new(old));
    let suites = tls::cipher_suites("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256").unwrap();
    for (min_version, cipher_suites, accepted) in [
        (MinVersion::Tls12, Vec::new(), Some("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")),
        (MinVersion::Tls12, suites, Some("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")),
        (MinVersion::Tls13, Vec::new(), None),
    ] {
        let settings = TlsSettings { http: true, min_version, cipher_suites, ..certificates.of("server") };
        let agent = AgentTls::load(&settings, "global", true).unwrap();
        let (near, far) = tokio::io::duplex(64 << 10);
        let name = ServerName::try_from("localhost").unwrap();
        let (dialed, _) = tokio::join!(old.connect(name, near), agent.accept_https(far));
        let suite = dialed.ok().and_then(|stream| stream.get_ref().1.negotiated_cipher_suite());
        assert_eq!(suite.map(|suite| format!("{:?}", suite.suite())).as_deref(), accepted);
    }
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let (certificates, others) = (Certificates::make(), Certificates::make());
    let right = rpc(certificates.of("server"));
    others.sign("server");
    certificates.write("empty.pem", "nothing");
    let file = |name: &str| Some(certificates.path(name));
    let cases = [
        (TlsSettings { ca_file: None, ..right.clone() }, "ca_file", "required"),
        (TlsSettings { cert_file: None, ..right.clone() }, "cert_file", "required"),
        (TlsSettings { key_file: None, ..right.clone() }, "key_file", "required"),
        (TlsSettings { ca_file: file("none.pem"), ..right.clone() }, "ca_file", "none.pem: No such file"),
        (TlsSettings { ca_file: file("empty.pem"), ..right.clone() }, "ca_file", "no certificate in PEM"),
        (TlsSettings { cert_file: file("server-key.pem"), ..right.clone() }, "cert_file", "no certificate"),
        (TlsSettings { key_file: file("server.pem"), ..right.clone() }, "key_file", "no private key"),
        (
            TlsSettings { key_file: Some(others.path("server-key.pem")), ..right.clone() },
            "key_file",
            "does not belong to the certificate",
        ),
        (
            TlsSettings { ca_file: Some(others.path("ca.pem")), ..right.clone() },
            "cert_file",
            "not signed by an authority of tls.ca_file",
        ),
        (rpc(certificates.of("client")), "cert_file", "not good for the name server.global.nomad"),
    ];
    for (settings, key, words) in cases {
        let error = AgentTls::load(&settings, "global", true).unwrap_err();
        assert_eq!(error.key, key, "{error}");
        assert!(error.why.contains(words), "{error}");
    }
    let bad_region = AgentTls::load(&right, "a b", true).unwrap_err();
    assert_eq!(bad_region.key, "region");
}

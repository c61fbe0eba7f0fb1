use std::fmt;
use std::io;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible,
    ServerConfig, SignatureScheme, version,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsConnector, TlsStream};

use crate::accept::accept;
use crate::policy;
use crate::roles::PeerIdentity;

/// What key pairs are derived for, besides the region of the server. Another use of the same keys must have another text.
const CONTEXT: &str = "sojourn 2026 servers of a region prove themselves over rpc";

/// The same for a server that dials one of another region.
const AWAY: &str = "sojourn 2026 servers prove themselves over rpc in other regions";

/// An Ed25519 private key in PKCS#8 up to the key itself, which is its last 32 bytes (RFC 8410).
const PKCS8_HEAD: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// The keys that servers share, as a proof of being one: TLS 1.3 in which each end shows the public key (RFC 7250) that
/// follows from its first key, and accepts those that follow from any of its keys. So a key is replaced without cutting
/// anybody off, and what was recorded of one handshake is worth nothing in another.
///
/// All regions share the keys, and each has key pairs of its own that follow from them: no server takes one of another region
/// for one of its own, be it by an address that changed hands. Who means another region shows a third pair and is known as
/// [`PeerIdentity::ForeignServer`]. Whoever has the keys could derive any of them: only certificates keep out a server
/// that is made to lie about its region.
#[derive(Debug, Default)]
pub struct SharedKeys {
    region: String,
    configs: ArcSwapOption<Configs>,
}

#[derive(Debug)]
struct Configs {
    accepting: Arc<ServerConfig>,
    dialing: Arc<ClientConfig>,
    /// What servers of other regions show here.
    foreign: Vec<Vec<u8>>,
    secrets: Secrets,
}

/// The keys themselves, which are not printed.
struct Secrets(Vec<Vec<u8>>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.0.len())
    }
}

impl SharedKeys {
    /// Of a server of this region, which has no keys yet.
    pub fn of(region: &str) -> SharedKeys {
        SharedKeys { region: region.to_string(), configs: ArcSwapOption::default() }
    }

    /// Uses these keys for new handshakes, the first one to prove this server. Without any nothing is proved or accepted.
    pub fn replace<'a>(&self, keys: impl IntoIterator<Item = &'a [u8]>) {
        let secrets: Vec<Vec<u8>> = keys.into_iter().map(<[u8]>::to_vec).collect();
        let configs = (!secrets.is_empty()).then(|| Arc::new(Configs::new(&self.region, secrets)));
        self.configs.store(configs);
    }

    pub fn are_set(&self) -> bool {
        self.configs.load().is_some()
    }

    /// The handshake, and whether a server of this or of another region is at the other end.
    ///
    /// # Errors
    /// The other end gave up, or does not have one of the keys.
    pub async fn accept<S>(&self, stream: S) -> io::Result<(TlsStream<S>, PeerIdentity)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let configs = self.configs()?;
        let stream = accept(configs.accepting.clone(), stream).await?;
        let shown = stream.get_ref().1.peer_certificates().and_then(|shown| shown.first());
        let is_foreign = shown.is_none_or(|shown| configs.foreign.iter().any(|key| **key == **shown));
        Ok((stream, if is_foreign { PeerIdentity::ForeignServer } else { PeerIdentity::Server }))
    }

    /// Dials a server of this region.
    ///
    /// # Errors
    /// As for [`SharedKeys::accept`].
    pub async fn connect<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        dial(self.configs()?.dialing.clone(), stream).await
    }

    /// Dials a server of another region.
    ///
    /// # Errors
    /// As for [`SharedKeys::accept`]; also if it is one of a third region.
    pub async fn connect_to<S>(&self, region: &str, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        dial(Arc::new(self.configs()?.dialing_away(region)), stream).await
    }

    fn configs(&self) -> io::Result<Arc<Configs>> {
        let configs = self.configs.load_full();
        configs.ok_or_else(|| io::Error::other("this server has no keys to prove itself with"))
    }
}

async fn dial<S>(config: Arc<ClientConfig>, stream: S) -> io::Result<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // Keys have no names, but the protocol asks for one.
    let name = ServerName::try_from("server").expect("a name");
    Ok(TlsStream::Client(TlsConnector::from(config).connect(name, stream).await?))
}

/// The pair by which servers of a region know each other.
fn pair_of_region(region: &str, key: &[u8]) -> Arc<dyn SigningKey> {
    // Keys have several lengths: what belongs to the key, and what to the region, must not be open.
    let length = u8::try_from(key.len()).unwrap_or(u8::MAX);
    key_pair(CONTEXT, &[&[length], key, region.as_bytes()].concat())
}

fn key_pair(context: &str, key: &[u8]) -> Arc<dyn SigningKey> {
    let mut pkcs8 = PKCS8_HEAD.to_vec();
    pkcs8.extend_from_slice(&blake3::derive_key(context, key));
    let pkcs8 = PrivatePkcs8KeyDer::from(pkcs8);
    rustls::crypto::aws_lc_rs::sign::any_eddsa_type(&pkcs8).expect("any 32 bytes are a key of Ed25519")
}

fn public_key(pair: &Arc<dyn SigningKey>) -> Vec<u8> {
    pair.public_key().expect("a key pair of Ed25519 knows its public half").to_vec()
}

impl Configs {
    /// There is one key at least.
    fn new(region: &str, secrets: Vec<Vec<u8>>) -> Configs {
        let pairs: Vec<_> = secrets.iter().map(|key| pair_of_region(region, key)).collect();
        let own: Vec<Vec<u8>> = pairs.iter().map(public_key).collect();
        let foreign: Vec<Vec<u8>> = secrets.iter().map(|key| public_key(&key_pair(AWAY, key))).collect();
        let provider = policy::provider(&[]);
        let verifier = KeyVerifier::of([own.clone(), foreign.clone()].concat(), &provider);
        let mut accepting = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])
            .expect("the provider has suites of this version")
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(shown(&pairs[0]))));
        policy::never_resume(&mut accepting);
        let dialing = Arc::new(dialing(&pairs[0], own));
        Configs { accepting: Arc::new(accepting), dialing, foreign, secrets: Secrets(secrets) }
    }

    fn dialing_away(&self, region: &str) -> ClientConfig {
        let Secrets(secrets) = &self.secrets;
        let accepted = secrets.iter().map(|key| public_key(&pair_of_region(region, key)));
        dialing(&key_pair(AWAY, &secrets[0]), accepted.collect())
    }
}

fn dialing(own: &Arc<dyn SigningKey>, accepted: Vec<Vec<u8>>) -> ClientConfig {
    let provider = policy::provider(&[]);
    let verifier = KeyVerifier::of(accepted, &provider);
    let mut dialing = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13])
        .expect("the provider has suites of this version")
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(shown(own))));
    dialing.resumption = Resumption::disabled();
    dialing.enable_sni = false;
    dialing
}

fn shown(pair: &Arc<dyn SigningKey>) -> Arc<CertifiedKey> {
    Arc::new(CertifiedKey::new(vec![CertificateDer::from(public_key(pair))], pair.clone()))
}

/// Accepts exactly these public keys, at either end.
#[derive(Debug)]
struct KeyVerifier {
    accepted: Vec<Vec<u8>>,
    provider: Arc<CryptoProvider>,
}

impl KeyVerifier {
    fn of(accepted: Vec<Vec<u8>>, provider: &Arc<CryptoProvider>) -> Arc<KeyVerifier> {
        Arc::new(KeyVerifier { accepted, provider: provider.clone() })
    }

    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        let is_known = self.accepted.iter().any(|accepted| accepted.as_slice() == shown.as_ref());
        if is_known { Ok(()) } else { Err(CertificateError::ApplicationVerificationFailure.into()) }
    }

    fn check_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(shown.as_ref());
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signed, algorithms)
    }
}

impl ServerCertVerifier for KeyVerifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _shown: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for KeyVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(shown).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _shown: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn keys(keys: &[&[u8]]) -> SharedKeys {
        let shared = SharedKeys::default();
        shared.replace(keys.iter().copied());
        shared
    }

    /// What each end says of a handshake, once a byte has gone each way.
    async fn meet(dialing: &SharedKeys, accepting: &SharedKeys) -> (bool, bool) {
        let (near, far) = tokio::io::duplex(64 << 10);
        let dial = async {
            let mut stream = dialing.connect(near).await.ok()?;
            stream.write_all(b"?").await.ok()?;
            stream.flush().await.ok()?;
            stream.read_u8().await.ok()
        };
        let accept = async {
            let (mut stream, identity) = accepting.accept(far).await.ok()?;
            assert_eq!(identity, PeerIdentity::Server);
            stream.read_u8().await.ok()?;
            stream.write_all(b"!").await.ok()?;
            stream.flush().await.ok()
        };
        let (dialed, accepted) = tokio::join!(dial, accept);
        (dialed.is_some(), accepted.is_some())
    }

    #[tokio::test]
    async fn whoever_has_one_of_the_keys_is_a_server_at_both_ends() {
        let (old, new): (&[u8], &[u8]) = (&[1; 16], &[2; 32]);
        // All the steps of a rotation: installed, used at one end, removed.
        for (one, other) in [
            (vec![old], vec![old]),
            (vec![old], vec![old, new]),
            (vec![old, new], vec![new, old]),
            (vec![new, old], vec![new]),
        ] {
            let (one, other) = (keys(&one), keys(&other));
            assert_eq!(meet(&one, &other).await, (true, true));
            assert_eq!(meet(&other, &one).await, (true, true));
        }
    }

    #[tokio::test]
    async fn another_key_and_none_are_refused() {
        let (right, wrong, none) = (keys(&[&[1; 32]]), keys(&[&[3; 32]]), SharedKeys::default());
        assert_eq!(meet(&wrong, &right).await, (false, false));
        assert_eq!(meet(&none, &right).await, (false, false));
        assert_eq!(meet(&right, &none).await, (false, false));
        // The first key counts for what is shown, so one that is not known yet does not do.
        assert_eq!(meet(&keys(&[&[3; 32], &[1; 32]]), &right).await, (false, false));
    }

    #[tokio::test]
    async fn a_server_of_another_region_is_none_of_this_one() {
        let of = |region: &str, key: u8| {
            let shared = SharedKeys::of(region);
            shared.replace([&[key; 32][..]]);
            shared
        };
        let (eu, us) = (of("eu", 1), of("us", 1));
        assert_eq!(meet(&us, &eu).await, (false, false), "it takes the other for one of its own region");
        let away = async |from: &SharedKeys, region: &str, to: &SharedKeys| {
            let (near, far) = tokio::io::duplex(64 << 10);
            let dial = async {
                let mut stream = from.connect_to(region, near).await.ok()?;
                stream.write_all(b"?").await.ok()?;
                stream.flush().await.ok()
            };
            let accept = async {
                let (mut stream, identity) = to.accept(far).await.ok()?;
                stream.read_u8().await.ok().map(|_| identity)
            };
            tokio::join!(dial, accept).1
        };
        assert_eq!(away(&us, "eu", &eu).await, Some(PeerIdentity::ForeignServer));
        assert_eq!(away(&us, "asia", &eu).await, None, "the address belongs to a server of a third region");
        assert_eq!(away(&of("us", 2), "eu", &eu).await, None);
        assert_eq!(away(&us, "eu", &of("eu", 2)).await, None);
    }

    #[tokio::test]
    async fn keys_that_are_replaced_count_from_the_next_handshake_on() {
        let (one, other) = (keys(&[&[1; 32]]), keys(&[&[1; 32]]));
        one.replace([&[2; 32][..]]);
        assert_eq!(meet(&one, &other).await, (false, false));
        other.replace([&[2; 32][..]]);
        assert_eq!(meet(&one, &other).await, (true, true));
        one.replace([]);
        assert!(!one.are_set());
    }

    #[tokio::test]
    async fn a_recorded_handshake_is_worth_nothing() {
        let shared = keys(&[&[1; 32]]);
        let (near, mut tap_near) = tokio::io::duplex(64 << 10);
        let (mut tap_far, far) = tokio::io::duplex(64 << 10);
        let record = async {
            let mut recorded = Vec::new();
            let (mut buffer, mut back) = ([0; 4096], [0; 4096]);
            loop {
                tokio::select! {
                    read = tap_near.read(&mut buffer) => match read {
                        Ok(length @ 1..) => {
                            recorded.extend_from_slice(&buffer[..length]);
                            tap_far.write_all(&buffer[..length]).await.unwrap();
                        }
                        _ => return recorded,
                    },
                    Ok(length @ 1..) = tap_far.read(&mut back) => tap_near.write_all(&back[..length]).await.unwrap(),
                }
            }
        };
        let dial = async {
            let mut stream = shared.connect(near).await.unwrap();
            stream.write_all(b"a call").await.unwrap();
            stream.shutdown().await.unwrap();
        };
        let accept = async {
            let mut text = [0; 6];
            let (mut stream, _) = shared.accept(far).await.unwrap();
            stream.read_exact(&mut text).await.unwrap();
            text
        };
        let ((), text, recorded) = tokio::join!(dial, accept, record);
        assert_eq!(&text, b"a call");
        let (mut replayed, again) = tokio::io::duplex(64 << 10);
        replayed.write_all(&recorded).await.unwrap();
        replayed.shutdown().await.unwrap();
        assert!(shared.accept(again).await.is_err());
    }

    #[test]
    fn keys_do_not_show_in_what_is_printed() {
        let secret = [0xab; 32];
        let shown = format!("{:?}", keys(&[&secret]));
        assert!(!shown.contains("171, 171"), "{shown}");
    }
}

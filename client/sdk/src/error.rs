use model::document::input::InputError;

/// Why a call did not give what it was made for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server said no. The text is the server's own.
    #[error("Unexpected response code: {code} ({text})")]
    Status { code: u16, text: String },
    /// Nobody answered there, or the connection broke.
    #[error("{address} cannot be reached: {reason}")]
    Unreachable { address: String, reason: String },
    /// The address names no place to connect to.
    #[error("the address \"{address}\" cannot be used: {reason}")]
    Address { address: String, reason: String },
    /// Certificates that were given, by the name of the flag.
    #[error("-{0}")]
    Tls(#[from] tls::TlsError),
    /// The server's answer is not what Nomad's API says.
    #[error("the answer of {path} cannot be understood: {source}")]
    Answer { path: String, source: InputError },
    /// A stream carried something else than Nomad's API says.
    #[error("the stream cannot be understood: {0}")]
    Stream(String),
    /// The server ended a session, in its own words.
    #[error("{reason}")]
    Ended { reason: String },
    /// A stream that promises heartbeats went silent.
    #[error("the stream has been silent for {secs} s")]
    Silent { secs: u64 },
}

impl Error {
    /// The status code, when the server gave one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Error::Status { code, .. } => Some(*code),
            Error::Unreachable { .. }
            | Error::Address { .. }
            | Error::Tls(_)
            | Error::Answer { .. }
            | Error::Stream(_)
            | Error::Ended { .. }
            | Error::Silent { .. } => None,
        }
    }

    /// True when the same call may succeed later: the connection broke, or the server is busy or leaderless.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Unreachable { .. } | Error::Silent { .. } => true,
            Error::Status { code, .. } => *code >= 500 || *code == 429,
            Error::Address { .. }
            | Error::Tls(_)
            | Error::Answer { .. }
            | Error::Stream(_)
            | Error::Ended { .. } => false,
        }
    }

    pub(crate) fn unreachable(address: &str, error: &reqwest::Error) -> Error {
        Error::Unreachable { address: address.to_string(), reason: innermost(error) }
    }
}

/// The last cause in the chain: `connection refused` rather than `error sending request`.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let refused = cause.downcast_ref::<std::io::Error>();
    match refused.filter(|error| error.kind() == std::io::ErrorKind::ConnectionRefused) {
        Some(_) => "connection refused: does an agent run there?".to_string(),
        None => with_advice(cause.to_string()),
    }
}

/// What to do about certificates that are not accepted, in the words of TLS.
fn with_advice(cause: String) -> String {
    let name = "-tls-server-name names what the certificate is for, like server.global.nomad";
    let advice = [
        ("UnknownIssuer", "is the authority of the agent's certificate given, with -ca-cert?"),
        ("NotValidForName", name),
        ("not valid for name", name),
        ("CertificateRequired", "the agent asks for a certificate: -client-cert and -client-key"),
        ("InvalidContentType", "does the agent use TLS there?"),
    ];
    match advice.iter().find(|(words, _)| cause.contains(words)) {
        Some((_, advice)) => format!("{cause}: {advice}"),
        None => cause,
    }
}

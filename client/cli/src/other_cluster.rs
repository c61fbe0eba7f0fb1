//! A cluster besides that of `-address`, which is only read.

use std::path::PathBuf;

use sdk::{Builder, Client, TlsOptions};

use crate::call::{Call, Doing, Failure};
use crate::flags::{Completion, Flag, FlagList};

const FROM_TOKEN: Flag<String> =
    Flag::value("from-token", "SECRET", "The ACL token for the other cluster. Also NOMAD_FROM_TOKEN.");
const FROM_REGION: Flag<String> =
    Flag::value("from-region", "NAME", "The region of the other cluster to read.");
const FROM_CA_CERT: Flag<String> =
    Flag::value("from-ca-cert", "FILE", "Whom to trust as a server of the other cluster.")
        .completed_by(Completion::Files);
const FROM_CLIENT_CERT: Flag<String> =
    Flag::value("from-client-cert", "FILE", "The certificate for the other cluster.")
        .completed_by(Completion::Files);
const FROM_CLIENT_KEY: Flag<String> =
    Flag::value("from-client-key", "FILE", "Its key.").completed_by(Completion::Files);
const FROM_TLS_SERVER_NAME: Flag<String> =
    Flag::value("from-tls-server-name", "NAME", "The name in the other server's certificate.");
const FROM_TLS_SKIP_VERIFY: Flag<bool> =
    Flag::switch("from-tls-skip-verify", "Trust any certificate of the other cluster.");

/// How that cluster is reached.
pub(crate) const FROM_FLAGS: FlagList = &[
    &FROM_TOKEN,
    &FROM_REGION,
    &FROM_CA_CERT,
    &FROM_CLIENT_CERT,
    &FROM_CLIENT_KEY,
    &FROM_TLS_SERVER_NAME,
    &FROM_TLS_SKIP_VERIFY,
];

/// A client of the cluster that is read.
pub(crate) fn client(call: &Call, url: &str) -> Result<Client, Failure> {
    let text = |flag| call.args.value(flag).unwrap_or_default().to_string();
    let token = match text(&FROM_TOKEN) {
        token if token.is_empty() => call.environment.from_token.clone(),
        token => token,
    };
    let path = |flag| PathBuf::from(text(flag));
    let tls = TlsOptions {
        ca_cert: path(&FROM_CA_CERT),
        client_cert: path(&FROM_CLIENT_CERT),
        client_key: path(&FROM_CLIENT_KEY),
        server_name: text(&FROM_TLS_SERVER_NAME),
        skip_verify: call.args.switch(&FROM_TLS_SKIP_VERIFY),
        ..TlsOptions::default()
    };
    let region = text(&FROM_REGION);
    let builder = Builder { address: url.to_string(), token, region, tls, ..Builder::default() };
    builder.build().doing("initializing client of the other cluster")
}

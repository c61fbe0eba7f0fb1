//! Sets other systems up so that tasks can log in to them with the identities that the cluster gives them.

mod consul;
mod readiness;
mod system;
mod vault;

use anyhow::Context;

use crate::call::{Call, Command};
use crate::flags::{Completion, Flag, FlagList};

pub(super) const COMMANDS: &[&Command] = &[&consul::COMMAND, &vault::COMMAND];

const DESTROY: Flag<bool> = Flag::switch("destroy", "Remove what this command has made, and nothing else.");
const YES: Flag<bool> = Flag::switch("y", "Ask no questions.");
const JWKS_URL: Flag<String> = Flag::value(
    "jwks-url",
    "URL",
    "Where the other system finds the keys that identities are signed with. Default: http://localhost:4646/.well-known/jwks.json.",
);
const JWKS_CA_FILE: Flag<String> =
    Flag::value("jwks-ca-file", "FILE", "The authority of the certificate at -jwks-url.")
        .completed_by(Completion::Files);

const SETUP_FLAGS: FlagList = &[&DESTROY, &YES, &JWKS_URL, &JWKS_CA_FILE];

/// What the cluster signs with: RSA, unless an operator wants Ed25519.
const ALGORITHMS: [&str; 2] = ["RS256", "EdDSA"];

/// Where the keys are, and the authority that vouches for that.
fn keys(call: &Call) -> anyhow::Result<(String, Option<String>)> {
    let url = call.args.value(&JWKS_URL).unwrap_or("http://localhost:4646/.well-known/jwks.json");
    let authority = call.args.value(&JWKS_CA_FILE).map(|file| {
        std::fs::read_to_string(file).with_context(|| format!("Error reading -jwks-ca-file {file}"))
    });
    Ok((url.to_string(), authority.transpose()?))
}

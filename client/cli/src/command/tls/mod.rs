//! Certificates for agents and their callers, without a tool of somebody else's.

mod ca;
mod cert;

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ::tls::authority::{CertificateInfo, Pair, describe};
use anyhow::Context;
use base::Time;

use crate::call::{Call, Command, Outcome};
use crate::output::{UNSET, fields, write_out};

pub(super) const COMMANDS: &[&Command] = &[&ca::CREATE, &ca::INFO, &cert::CREATE, &cert::INFO];

/// Writes a certificate and its key for the owner alone to read.
///
/// # Errors
/// One of the files is there: nothing is written then.
fn save(pair: &Pair, certificate: &str, key: &str) -> anyhow::Result<()> {
    if let Some(there) = [certificate, key].into_iter().find(|name| Path::new(name).exists()) {
        anyhow::bail!("{there} is there already: it is left as it is");
    }
    for (name, text) in [(key, &pair.key), (certificate, &pair.certificate)] {
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(name)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        write().with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}

fn read(path: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
}

type NamedLists = Vec<(&'static str, Vec<String>)>;

/// Prints what stands in the certificate that the only argument names, with lists of its own kind at the end.
fn show(call: &Call, lists: fn(CertificateInfo) -> NamedLists) -> Outcome {
    let path = call.one_argument()?;
    let info = describe(read(path)?.as_bytes()).with_context(|| path.to_string())?;
    let mut lines = vec![
        ("Serial Number", info.serial.clone()),
        ("Issuer CN", info.issuer.clone()),
        ("Common Name", info.common_name.clone()),
        ("Expiry Date", call.style().time(Time::from_secs(info.expires).0)),
    ];
    let shown = |texts: Vec<String>| if texts.is_empty() { UNSET.to_string() } else { texts.join(", ") };
    lines.extend(lists(info).into_iter().map(|(name, texts)| (name, shown(texts))));
    write_out(fields(&lines));
    Ok(0)
}

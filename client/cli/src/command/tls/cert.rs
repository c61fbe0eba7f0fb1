use std::net::{IpAddr, Ipv4Addr};

use ::tls::authority::{CertificateRequest, Pair, create_certificate};
use anyhow::Context;

use super::{read, save, show};
use crate::call::{Call, Command, Failure, Outcome, Run};
use crate::flags::{Completion, Flag};
use crate::output::write_out;

const CA: Flag<String> =
    Flag::value("ca", "FILE", "The certificate of the authority. Default: DOMAIN-agent-ca.pem.")
        .completed_by(Completion::Files);
const KEY: Flag<String> =
    Flag::value("key", "FILE", "Its key. Default: DOMAIN-agent-ca-key.pem.").completed_by(Completion::Files);
const SERVER: Flag<bool> = Flag::switch("server", "A certificate for servers.");
const CLIENT: Flag<bool> = Flag::switch("client", "A certificate for client agents.");
const CLI: Flag<bool> = Flag::switch("cli", "A certificate for those who call agents.");
const DAYS: Flag<u32> = Flag::number("days", "N", "Days for which the certificate is good. Default: 365.");
const DOMAIN: Flag<String> = Flag::value("domain", "NAME", "The domain of the cluster. Default: nomad.");
const REGION: Flag<String> =
    Flag::value("region", "NAME", "The region of the agents. Also NOMAD_REGION. Default: global.");
const ADDITIONAL_DNSNAME: Flag<Vec<String>> =
    Flag::values("additional-dnsname", "NAME", "One more name; may be repeated. localhost is always there.");
const ADDITIONAL_IPADDRESS: Flag<Vec<String>> = Flag::values(
    "additional-ipaddress",
    "IP",
    "One more address; may be repeated. 127.0.0.1 is always there.",
);

const DAYS_DEFAULT: u32 = 365;

pub(super) static CREATE: Command = Command {
    name: "tls cert create",
    aliases: &[],
    arguments: "",
    summary: "Make a certificate that an authority signs.",
    details: "Writes REGION-server-DOMAIN.pem and REGION-server-DOMAIN-key.pem, or the same with client or cli. Agents know each\n\
              other by the names in it, server.REGION.nomad and client.REGION.nomad; another domain than nomad is for other\n\
              uses. Files that are there are left as they are.",
    flags: &[&[
        &CA,
        &CLI,
        &CLIENT,
        &DAYS,
        &DOMAIN,
        &KEY,
        &REGION,
        &SERVER,
        &ADDITIONAL_DNSNAME,
        &ADDITIONAL_IPADDRESS,
    ]],
    run: Run::Process(create),
};

pub(super) static INFO: Command = Command {
    name: "tls cert info",
    aliases: &[],
    arguments: "<certificate file>",
    summary: "Show what stands in a certificate.",
    details: "",
    flags: &[],
    run: Run::Process(|call| {
        show(&call, |info| vec![("DNS Names", info.dns_names), ("IP Addresses", info.addresses)])
    }),
};

fn create(call: Call) -> Outcome {
    call.no_arguments()?;
    let (role, title) = role(&call)?;
    let domain = call.args.value(&DOMAIN).unwrap_or("nomad");
    let region = match call.args.value(&REGION).unwrap_or(&call.environment.region) {
        "" => "global",
        given => given,
    };
    let file = |flag, default: &str| {
        call.args.value(flag).map_or_else(|| format!("{domain}{default}"), str::to_string)
    };
    let authority = Pair {
        certificate: read(&file(&CA, "-agent-ca.pem"))?,
        key: read(&file(&KEY, "-agent-ca-key.pem"))?,
    };
    let addresses = call.args.values(&ADDITIONAL_IPADDRESS).iter().map(|text| {
        text.parse().with_context(|| format!("-additional-ipaddress {text}: expected an IP address"))
    });
    let addresses: Vec<IpAddr> = addresses.collect::<anyhow::Result<_>>()?;
    let names =
        ["localhost".to_string()].into_iter().chain(call.args.values(&ADDITIONAL_DNSNAME).iter().cloned());
    let request = CertificateRequest {
        name: format!("{role}.{region}.{domain}"),
        dns_names: names.collect(),
        addresses: std::iter::once(Ipv4Addr::LOCALHOST.into()).chain(addresses).collect(),
        days: call.args.parsed(&DAYS)?.unwrap_or(DAYS_DEFAULT),
        only_calls: role == "cli",
    };
    let pair = create_certificate(&authority, &request).map_err(anyhow::Error::from)?;
    let name = format!("{region}-{role}-{domain}");
    let (certificate, key) = (format!("{name}.pem"), format!("{name}-key.pem"));
    save(&pair, &certificate, &key)?;
    write_out(format!(
        "==> {title} Certificate saved to {certificate}\n==> {title} Certificate key saved to {key}\n"
    ));
    Ok(0)
}

/// What the certificate is for, as it stands in names and in messages.
fn role(call: &Call) -> Result<(&'static str, &'static str), Failure> {
    let wanted = [call.args.switch(&SERVER), call.args.switch(&CLIENT), call.args.switch(&CLI)];
    match wanted {
        [true, false, false] => Ok(("server", "Server")),
        [false, true, false] => Ok(("client", "Client")),
        [false, false, true] => Ok(("cli", "Cli")),
        _ => Err(call.usage("Please provide either -server, -client, or -cli")),
    }
}

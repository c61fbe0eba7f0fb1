use ::tls::authority::{AuthorityRequest, create_authority};

use super::{save, show};
use crate::call::{Call, Command, Outcome, Run};
use crate::flags::Flag;
use crate::output::write_out;

const DAYS: Flag<u32> = Flag::number("days", "N", "Days for which the authority is good. Default: 1825.");
const DOMAIN: Flag<String> =
    Flag::value("domain", "NAME", "The domain of the cluster, and of the file names. Default: nomad.");
const NAME_CONSTRAINT: Flag<bool> = Flag::switch(
    "name-constraint",
    "The authority can sign names of the domain and localhost only, and of -additional-domain.",
);
const ADDITIONAL_DOMAIN: Flag<Vec<String>> =
    Flag::values("additional-domain", "NAME", "One more domain that may be signed; may be repeated.");
const COMMON_NAME: Flag<String> = Flag::value("common-name", "TEXT", "The common name of the authority.");
const COUNTRY: Flag<String> = Flag::value("country", "TEXT", "The country, in two letters.");
const POSTAL_CODE: Flag<String> = Flag::value("postal-code", "TEXT", "The postal code.");
const PROVINCE: Flag<String> = Flag::value("province", "TEXT", "The state or province.");
const LOCALITY: Flag<String> = Flag::value("locality", "TEXT", "The town.");
const STREET_ADDRESS: Flag<String> = Flag::value("street-address", "TEXT", "The street and number.");
const ORGANIZATION: Flag<String> = Flag::value("organization", "TEXT", "The organization.");
const ORGANIZATIONAL_UNIT: Flag<String> =
    Flag::value("organizational-unit", "TEXT", "The unit of the organization.");

/// Five years.
const DAYS_DEFAULT: u32 = 1_825;

pub(super) static CREATE: Command = Command {
    name: "tls ca create",
    aliases: &[],
    arguments: "",
    summary: "Make a certificate authority for a cluster.",
    details: "Writes DOMAIN-agent-ca.pem, which every agent needs, and DOMAIN-agent-ca-key.pem, which none does: whoever has\n\
              it makes servers. Files that are there are left as they are.",
    flags: &[&[
        &DAYS,
        &NAME_CONSTRAINT,
        &ADDITIONAL_DOMAIN,
        &DOMAIN,
        &COMMON_NAME,
        &COUNTRY,
        &POSTAL_CODE,
        &PROVINCE,
        &LOCALITY,
        &STREET_ADDRESS,
        &ORGANIZATION,
        &ORGANIZATIONAL_UNIT,
    ]],
    run: Run::Process(create),
};

pub(super) static INFO: Command = Command {
    name: "tls ca info",
    aliases: &[],
    arguments: "<CA file>",
    summary: "Show what stands in the certificate of an authority.",
    details: "",
    flags: &[],
    run: Run::Process(|call| show(&call, |info| vec![("Permitted DNS Domains", info.permitted_domains)])),
};

fn create(call: Call) -> Outcome {
    call.no_arguments()?;
    let text = |flag| call.args.value(flag).unwrap_or_default().to_string();
    let domain = call.args.value(&DOMAIN).unwrap_or("nomad");
    let constrained = call.args.switch(&NAME_CONSTRAINT);
    let additional = call.args.values(&ADDITIONAL_DOMAIN);
    if !constrained && !additional.is_empty() {
        return Err(call.usage("-additional-domain needs -name-constraint"));
    }
    let permitted =
        [domain.to_string(), "localhost".to_string()].into_iter().chain(additional.iter().cloned());
    let request = AuthorityRequest {
        common_name: text(&COMMON_NAME),
        country: text(&COUNTRY),
        postal_code: text(&POSTAL_CODE),
        province: text(&PROVINCE),
        locality: text(&LOCALITY),
        street_address: text(&STREET_ADDRESS),
        organization: text(&ORGANIZATION),
        organizational_unit: text(&ORGANIZATIONAL_UNIT),
        days: call.args.parsed(&DAYS)?.unwrap_or(DAYS_DEFAULT),
        permitted_domains: if constrained { permitted.collect() } else { Vec::new() },
    };
    let pair = create_authority(&request).map_err(anyhow::Error::from)?;
    let (certificate, key) = (format!("{domain}-agent-ca.pem"), format!("{domain}-agent-ca-key.pem"));
    save(&pair, &certificate, &key)?;
    write_out(format!(
        "==> CA certificate saved to: {certificate}\n==> CA certificate key saved to: {key}\n"
    ));
    Ok(0)
}

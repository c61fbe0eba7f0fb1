//! `client.dns`: where services are found by the DNS.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::Duration;
use jobspec::config::Section;
use node::dns::{DnsSettings, names, recursion};

use super::unsupported::Refused;

/// The longest time that an answer may be remembered: what ends is found for as long.
const TTL_MAX: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn dns(settings: &mut Option<DnsSettings>, mut section: Section, refused: &mut Refused) {
    let mut enabled = settings.is_some();
    let known = settings.take().unwrap_or_else(usual);
    let (mut address, mut port) = (known.address.ip().to_string(), known.address.port());
    let (mut domain, mut ttl) = (known.domain, Duration::from(known.ttl));
    let mut recursors: Vec<String> = known.recursors.iter().map(SocketAddr::to_string).collect();
    refused.set(&mut section, "enabled", &mut enabled);
    refused.set(&mut section, "address", &mut address);
    refused.set(&mut section, "port", &mut port);
    refused.set(&mut section, "domain", &mut domain);
    refused.set(&mut section, "ttl", &mut ttl);
    refused.list(&mut section, "recursors", &mut recursors);
    let ip = address
        .parse::<IpAddr>()
        .map_err(|_| format!("dns.address: expected an IP address, not \"{address}\""));
    let domain = names::check_domain(&domain).map_err(|why| format!("dns.domain: {why}"));
    if port == 0 {
        refused.also(Err(section.wrong("dns.port = 0: expected a port from 1 to 65535".to_string())));
    }
    if !(Duration::ZERO..=TTL_MAX).contains(&ttl) {
        refused.also(Err(section.wrong(format!("dns.ttl = {ttl}: expected a time from 0s to {TTL_MAX}"))));
    }
    let made = ip.and_then(|ip| {
        let address = SocketAddr::new(ip, port);
        let recursors = resolvers(&recursors, address)?;
        Ok(DnsSettings { address, domain: domain?, ttl: ttl.to_std(), recursors })
    });
    match made {
        Ok(made) => *settings = enabled.then_some(made),
        Err(why) => refused.also(Err(section.wrong(why))),
    }
    refused.done(section);
}

/// Who is asked what is not about services.
fn resolvers(given: &[String], listener: SocketAddr) -> Result<Vec<SocketAddr>, String> {
    let most = recursion::RECURSORS_MAX;
    if given.len() > most {
        return Err(format!("dns.recursors: expected at most {most} resolvers, got {}", given.len()));
    }
    let read = |text: &String| recursion::check_recursor(text, listener);
    given.iter().map(read).collect::<Result<_, _>>().map_err(|why| format!("dns.recursors: {why}"))
}

fn usual() -> DnsSettings {
    DnsSettings {
        address: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 8600),
        domain: "service.nomad".to_string(),
        ttl: std::time::Duration::from_secs(5),
        recursors: Vec::new(),
    }
}

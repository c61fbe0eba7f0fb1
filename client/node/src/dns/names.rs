//! What the names below the domain stand for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest name of a domain: what is before it in a question needs room too.
const DOMAIN_MAX: usize = 127;

/// Where services are that are asked for without a namespace.
const DEFAULT_NAMESPACE: &str = "default";

/// What a name stands for. All text is lowercase: the DNS does not tell case apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    Service {
        namespace: String,
        name: String,
        tag: Option<String>,
    },
    Address(IpAddr),
    /// The domain itself.
    Domain,
    /// Nothing is there, but names are below it.
    Between,
    /// No name is like this.
    Nothing,
}

/// Says what the labels before the domain ask for; lowercase, the leftmost first.
pub fn asked(labels: &[&str]) -> Asked {
    match labels {
        [] => Asked::Domain,
        ["addr" | "ns" | "_tcp" | "_udp"] | [_, "ns"] => Asked::Between,
        [host, "addr"] => address_of(host).map_or(Asked::Nothing, Asked::Address),
        [service @ .., namespace, "ns"] => service_of(service, namespace),
        service => service_of(service, DEFAULT_NAMESPACE),
    }
}

fn service_of(labels: &[&str], namespace: &str) -> Asked {
    let (name, tag) = match labels {
        [service, "_tcp" | "_udp"] => match service.strip_prefix('_') {
            Some(name) if !name.is_empty() => (name, None),
            _ => return Asked::Nothing,
        },
        ["_tcp" | "_udp"] => return Asked::Between,
        [name] => (*name, None),
        [tag, name] => (*name, Some((*tag).to_string())),
        _ => return Asked::Nothing,
    };
    Asked::Service { namespace: namespace.to_string(), name: name.to_string(), tag }
}

/// The label of an address, below `addr`: its bytes in hexadecimal digits.
pub fn label_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("{:08x}", u32::from(address)),
        IpAddr::V6(address) => format!("{:032x}", u128::from(address)),
    }
}

fn address_of(label: &str) -> Option<IpAddr> {
    if !label.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    match label.len() {
        8 => u32::from_str_radix(label, 16).ok().map(|bits| Ipv4Addr::from(bits).into()),
        32 => u128::from_str_radix(label, 16).ok().map(|bits| Ipv6Addr::from(bits).into()),
        _ => None,
    }
}

/// The domain as [`super::DnsSettings`] has it.
///
/// # Errors
/// When it is not a name.
pub fn check_domain(text: &str) -> Result<String, String> {
    let domain = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.chars().all(plain);
    if domain.len() > DOMAIN_MAX || !domain.split('.').all(is_label) {
        return Err(format!(
            "expected a domain like service.nomad of at most {DOMAIN_MAX} characters, not \"{text}\""
        ));
    }
    Ok(domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(namespace: &str, name: &str, tag: Option<&str>) -> Asked {
        Asked::Service { namespace: namespace.into(), name: name.into(), tag: tag.map(Into::into) }
    }

    #[test]
    fn a_name_asks_for_one_thing() {
        let cases: [(&str, Asked); 13] = [
            ("web", service("default", "web", None)),
            ("v1.web", service("default", "web", Some("v1"))),
            ("_web._tcp", service("default", "web", None)),
            ("_web._udp.prod.ns", service("prod", "web", None)),
            ("web.prod.ns", service("prod", "web", None)),
            ("v1.web.prod.ns", service("prod", "web", Some("v1"))),
            ("7f000001.addr", Asked::Address([127, 0, 0, 1].into())),
            ("7f00001.addr", Asked::Nothing),
            ("+f000001.addr", Asked::Nothing),
            ("prod.ns", Asked::Between),
            ("_tcp.prod.ns", Asked::Between),
            ("web._tcp", Asked::Nothing),
            ("a.b.c", Asked::Nothing),
        ];
        for (name, expected) in cases {
            assert_eq!(asked(&name.split('.').collect::<Vec<_>>()), expected, "{name}");
        }
        assert_eq!(asked(&[]), Asked::Domain);
    }

    #[test]
    fn an_address_is_found_by_its_label() {
        for address in ["10.0.0.255", "fd00::1"].map(|text| text.parse::<IpAddr>().unwrap()) {
            assert_eq!(address_of(&label_of(address)), Some(address));
        }
    }

    #[test]
    fn a_domain_is_a_name() {
        assert_eq!(check_domain("Service.Nomad.").unwrap(), "service.nomad");
        for wrong in ["", ".", "a..b", "a b", &"a".repeat(64)] {
            assert!(check_domain(wrong).is_err(), "{wrong}");
        }
    }
}

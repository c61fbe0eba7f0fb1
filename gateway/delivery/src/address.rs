//! Which addresses may be connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::LazyLock;

use ipnet::IpNet;

/// Where the rules are configured, as errors name it.
const SETTING: &str = "server.sinks";

/// What an operator allows. Addresses are checked when a connection is opened: what a name stands for may change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressRules {
    /// Nothing else, if there are some; also what is refused by default.
    pub allow: Vec<IpNet>,
    /// Never, whatever is allowed.
    pub deny: Vec<IpNet>,
}

/// What nobody sends events to on purpose, and what a cloud tells its virtual machines in confidence.
static RESERVED: LazyLock<Vec<(IpNet, &str)>> = LazyLock::new(|| {
    let networks = [
        ("0.0.0.0/8", "no address of a host"),
        ("169.254.0.0/16", "link-local, where clouds serve metadata"),
        ("100.100.100.200/32", "where a cloud serves metadata"),
        ("168.63.129.16/32", "where a cloud serves metadata"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("::/128", "no address of a host"),
        ("fe80::/10", "link-local"),
        ("fd00:ec2::254/128", "where a cloud serves metadata"),
        ("fd20:ce::254/128", "where a cloud serves metadata"),
        ("ff00::/8", "multicast"),
    ];
    networks.map(|(network, what)| (network.parse().expect("it is a network"), what)).to_vec()
});

impl AddressRules {
    /// For what an operator has named on the very host.
    pub fn anywhere() -> AddressRules {
        let allow = ["0.0.0.0/0", "::/0"].map(|text| text.parse().expect("it is a network")).to_vec();
        AddressRules { allow, ..AddressRules::default() }
    }

    /// Those of a host's addresses that are allowed: one at least.
    ///
    /// # Errors
    /// There is none: what refuses the last one.
    pub(crate) fn allowed_of(
        &self,
        addresses: impl Iterator<Item = SocketAddr>,
    ) -> Result<Vec<SocketAddr>, String> {
        let (mut allowed, mut why) = (Vec::new(), "the host has no address".to_string());
        for address in addresses {
            match self.check(address.ip()) {
                Ok(()) => allowed.push(address),
                Err(refused) => why = refused,
            }
        }
        if allowed.is_empty() { Err(why) } else { Ok(allowed) }
    }

    /// # Errors
    /// The address, and what refuses it.
    pub fn check(&self, address: IpAddr) -> Result<(), String> {
        let address = carried(address);
        let find = |networks: &[IpNet]| networks.iter().find(|network| network.contains(&address)).copied();
        if let Some(network) = find(&self.deny) {
            return Err(format!("{address} is in {network}, which {SETTING}.deny refuses"));
        }
        if find(&self.allow).is_some() {
            return Ok(());
        }
        if !self.allow.is_empty() {
            return Err(format!("{address} is in no network of {SETTING}.allow"));
        }
        match RESERVED.iter().find(|(network, _)| network.contains(&address)) {
            Some((network, what)) => {
                Err(format!("{address} is {what}: {SETTING}.allow does not have it, nor {network}"))
            }
            None => Ok(()),
        }
    }
}

/// An address of IPv4 in the clothes of IPv6 leads to the same host: mapped, through NAT64 or through 6to4.
fn carried(address: IpAddr) -> IpAddr {
    let address = address.to_canonical();
    let IpAddr::V6(long) = address else { return address };
    let of = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match long.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => of(high, low),
        // The old form, which no host has; `::1` and `::` are others.
        [0, 0, 0, 0, 0, 0, high, low] if !is_short(long) => of(high, low),
        [0x2002, high, low, ..] => of(high, low),
        _ => address,
    }
}

fn is_short(address: Ipv6Addr) -> bool {
    address.is_loopback() || address.is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> AddressRules {
        let networks = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        AddressRules { allow: networks(allow), deny: networks(deny) }
    }

    fn check(rules: &AddressRules, address: &str) -> Result<(), String> {
        rules.check(address.parse().unwrap())
    }

    #[test]
    fn metadata_of_clouds_is_refused_in_every_form_and_loopback_is_not() {
        let rules = rules(&[], &[]);
        for address in
            ["127.0.0.1", "::1", "10.0.0.1", "192.0.2.7", "2001:db8::1", "fd12::1", "100.100.100.201"]
        {
            assert_eq!(check(&rules, address), Ok(()), "{address}");
        }
        for address in [
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "::169.254.169.254",
            "fe80::1",
            "fd00:ec2::254",
            "100.100.100.200",
            "0.0.0.0",
            "::",
            "224.0.0.1",
            "ff02::1",
        ] {
            let why = check(&rules, address).unwrap_err();
            assert!(why.contains("server.sinks.allow"), "{address}: {why}");
        }
    }

    #[test]
    fn what_is_allowed_is_all_there_is_and_what_is_denied_stays_denied() {
        let narrow = rules(&["10.0.0.0/8", "169.254.169.254/32"], &["10.9.0.0/16"]);
        assert_eq!(check(&narrow, "10.1.2.3"), Ok(()));
        assert_eq!(check(&narrow, "169.254.169.254"), Ok(()), "somebody wants it");
        let why = check(&narrow, "10.9.2.3").unwrap_err();
        assert_eq!(why, "10.9.2.3 is in 10.9.0.0/16, which server.sinks.deny refuses");
        let why = check(&narrow, "127.0.0.1").unwrap_err();
        assert_eq!(why, "127.0.0.1 is in no network of server.sinks.allow");
        assert!(check(&narrow, "::1").is_err());
        let local = rules(&[], &["127.0.0.0/8", "::1/128"]);
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0"] {
            assert!(check(&local, address).is_err(), "{address}");
        }
    }
}

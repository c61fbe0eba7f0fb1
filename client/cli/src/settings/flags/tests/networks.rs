use super::read_all;

#[test]
fn networks_of_groups_are_read() {
    let hcl = r#"client {
        bridge_network_name          = "shared"
        bridge_network_subnet        = "10.200.0.0/16"
        bridge_network_subnet_ipv6   = "fd00:1::/64"
        bridge_network_hairpin_mode  = true
        bind_wildcard_default_host_network = false
        cni_path       = "/a:/b"
        cni_config_dir = "/c"
        host_network "public" {
          cidr           = "192.0.2.0/24, 2001:db8::/32"
          interface      = "eth1"
          reserved_ports = "22,80"
        }
    }"#;
    let network = read_all(&[("a.hcl", hcl)], &["-dev"]).unwrap().client.network;
    assert_eq!(network.bridge_name, "shared");
    assert_eq!(network.bridge_subnet.gateway().to_string(), "10.200.0.1");
    assert_eq!(network.bridge_subnet_v6.unwrap().gateway().to_string(), "fd00:1::1");
    assert!(network.bridge_hairpin && !network.bind_wildcard);
    assert_eq!(network.cni_path, ["/a", "/b"].map(std::path::PathBuf::from));
    assert_eq!(network.cni_config_dir, std::path::Path::new("/c"));
    let public = &network.host_networks["public"];
    assert_eq!((public.interface.as_str(), public.reserved_ports.as_str()), ("eth1", "22,80"));
}

#[test]
fn networks_that_cannot_be_are_refused_by_name() {
    for (text, expected) in [
        (
            "client { host_network \"default\" { cidr = \"::/0\" } }",
            "host_network \"default\": expected a name other than default",
        ),
        ("client { bridge_network_name = \"much-too-long-a-name\" }", "expected 1 to 15 characters"),
        (
            "client { bridge_network_subnet = \"fd00::/64\" }",
            "bridge_network_subnet: expected an IPv4 network like 172.26.64.0/20, not \"fd00::/64\"",
        ),
        (
            "client { bridge_network_subnet_ipv6 = \"10.0.0.0/8\" }",
            "bridge_network_subnet_ipv6: expected an IPv6 network",
        ),
    ] {
        let refused = read_all(&[("a.hcl", text)], &["-dev"]).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    }
}

//! Where the gateways of the mesh listen when their group has a network of its own.

use model::document::{ConsulGateway, ConsulGatewayBindAddress, ConsulGatewayProxy, Duration, TaskGroup};

use super::connect::add_port;
use super::fill;

/// Every address of the group's network: the one of the node, where a proxy listens by default, is outside of it.
const EVERY_ADDRESS: &str = "0.0.0.0";
/// The port that is handed out for the gateway.
const GIVEN_PORT: i64 = -1;

/// Adds addresses and ports unless the author names addresses. Gateways in the node's own network stay as they are.
pub(super) fn bind(group: &mut TaskGroup) {
    let TaskGroup { networks, services, .. } = group;
    let own_network = |mode: &str| mode == "bridge" || mode.starts_with("cni/");
    let Some(network) = networks.first_mut().filter(|network| own_network(&network.mode)) else { return };
    for service in services.iter_mut() {
        let gateway = service.connect.as_mut().and_then(|connect| connect.gateway.as_mut());
        let Some(gateway) = gateway else { continue };
        complete_proxy(gateway);
        match gateway {
            ConsulGateway { ingress: Some(_), .. } => {}
            ConsulGateway { terminating: Some(_), .. } => {
                add_port(network, &format!("connect-terminating-{}", service.name));
            }
            // The port of the service is the one for other datacenters.
            _ => add_port(network, &format!("connect-mesh-{}-lan", service.name)),
        }
    }
}

fn complete_proxy(gateway: &mut ConsulGateway) {
    let addresses = addresses(gateway);
    let proxy = gateway.proxy.get_or_insert_default();
    fill(&mut proxy.connect_timeout, Duration::from_secs(5));
    if names_addresses(proxy) {
        return;
    }
    proxy.envoy_gateway_no_default_bind = true;
    proxy.envoy_gateway_bind_tagged_addresses = false;
    for (name, port) in addresses {
        let address =
            ConsulGatewayBindAddress { address: EVERY_ADDRESS.to_string(), port, ..Default::default() };
        proxy.envoy_gateway_bind_addresses.insert(name, address);
    }
}

fn names_addresses(proxy: &ConsulGatewayProxy) -> bool {
    proxy.envoy_gateway_no_default_bind || !proxy.envoy_gateway_bind_addresses.is_empty()
}

/// An ingress listens where its listeners say, the others at the ports that are handed out for them.
fn addresses(gateway: &ConsulGateway) -> Vec<(String, i64)> {
    let given = |name: &str| (name.to_string(), GIVEN_PORT);
    match gateway {
        ConsulGateway { ingress: Some(ingress), .. } => {
            let of_listeners = ingress.listeners.iter().flat_map(|listener| {
                listener.services.iter().map(|service| (service.name.clone(), listener.port))
            });
            of_listeners.collect()
        }
        ConsulGateway { terminating: Some(_), .. } => vec![given("default")],
        _ => vec![given("lan"), given("wan")],
    }
}

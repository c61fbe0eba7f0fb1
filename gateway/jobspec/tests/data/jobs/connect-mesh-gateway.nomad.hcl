job "countdash-mesh-one" {
  datacenters = ["one"]

  group "mesh-gateway-one" {
    network {
      mode = "bridge"
      port "mesh_wan" {
        host_network = "public"
      }
    }

    service {
      name = "mesh-gateway"
      port = "mesh_wan"

      connect {
        gateway {
          mesh {}
          proxy {
            envoy_gateway_no_default_bind       = true
            envoy_gateway_bind_tagged_addresses = true
            envoy_dns_discovery_type            = "STRICT_DNS"
          }
        }
      }
    }
  }
}

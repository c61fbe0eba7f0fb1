job "egress" {
  datacenters = ["dc1"]

  group "gateway" {
    network {
      mode = "bridge"
    }

    service {
      name = "api-gateway"

      connect {
        gateway {
          proxy {}
          terminating {
            service {
              name      = "count-api"
              ca_file   = "/certs/ca.pem"
              cert_file = "/certs/gateway.pem"
              key_file  = "/certs/gateway.key"
              sni       = "count.example.com"
            }
          }
        }
      }
    }
  }
}

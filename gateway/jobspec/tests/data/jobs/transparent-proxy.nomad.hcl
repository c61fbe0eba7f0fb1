job "tproxy" {
  group "api" {
    network {
      mode = "bridge"
    }
    service {
      name     = "count-api"
      provider = "consul"
      port     = "9001"
      connect {
        sidecar_service {
          proxy {
            transparent_proxy {
              uid                    = "101"
              outbound_port          = 15001
              exclude_inbound_ports  = ["8080", "metrics"]
              exclude_outbound_ports = [443, 80]
              exclude_outbound_cidrs = ["10.0.0.0/8"]
              exclude_uids           = ["1000"]
              no_dns                 = false
            }
          }
        }
      }
    }
    task "web" {
      driver = "docker"
      config {
        image = "registry.example.com/counter-api:v3"
      }
    }
  }
}

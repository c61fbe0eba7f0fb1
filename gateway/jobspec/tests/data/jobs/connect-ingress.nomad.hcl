job "ingress" {
  datacenters = ["dc1"]

  group "ingress-group" {
    network {
      mode = "bridge"
      port "inbound" {
        static = 8080
        to     = 8080
      }
    }

    service {
      name = "my-ingress-service"
      port = "8080"

      connect {
        gateway {
          proxy {
            connect_timeout = "10s"
            envoy_gateway_bind_addresses "uuid-api" {
              address = "0.0.0.0"
              port    = 8080
            }
            config {
              envoy_stats_bind_addr = "0.0.0.0:9102"
            }
          }

          ingress {
            tls {
              enabled         = true
              tls_min_version = "TLSv1_2"
              cipher_suites   = ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]
            }

            listener {
              port     = 8080
              protocol = "tcp"
              service {
                name = "uuid-api"
              }
            }

            listener {
              port     = 8081
              protocol = "http"
              service {
                name            = "*"
                hosts           = ["api.example.com", "*.example.com"]
                max_connections = 512
                request_headers {
                  add {
                    x-from = "gateway"
                  }
                  remove = ["x-debug"]
                }
              }
            }
          }
        }
      }
    }
  }
}

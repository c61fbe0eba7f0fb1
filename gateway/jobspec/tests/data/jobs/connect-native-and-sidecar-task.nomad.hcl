job "mesh" {
  group "native" {
    network {
      port "api" {}
    }
    service {
      name = "uuid-api"
      port = "api"
      task = "generate"
      connect {
        native = true
      }
    }
    task "generate" {
      driver = "docker"
      config {
        image        = "registry.example.com/uuid-api:v5"
        network_mode = "host"
      }
      env {
        BIND = "0.0.0.0"
        PORT = "${NOMAD_PORT_api}"
      }
    }
  }

  group "frontend" {
    network {
      mode = "bridge"
      port "metrics" {
        to = -1
      }
    }
    service {
      name = "frontend"
      port = 9000
      meta {
        metrics_port = "${NOMAD_HOST_PORT_metrics}"
      }
      connect {
        sidecar_service {
          tags                      = ["proxy"]
          disable_default_tcp_check = true
          meta = {
            envoy = "custom"
          }
          proxy {
            local_service_address = "127.0.0.1"
            local_service_port    = 9000
            expose {
              path {
                path            = "/health"
                protocol        = "http"
                local_path_port = 9000
                listener_port   = "metrics"
              }
            }
            upstreams {
              destination_name   = "uuid-api"
              local_bind_port    = 8080
              local_bind_address = "127.0.0.1"
              datacenter         = "dc2"
              mesh_gateway {
                mode = "local"
              }
              config {
                connect_timeout_ms = 5000
              }
            }
            upstreams {
              destination_name       = "cache"
              local_bind_socket_path = "/alloc/cache.sock"
              local_bind_socket_mode = "0770"
            }
            config {
              protocol = "http"
            }
          }
        }
        sidecar_task {
          driver = "docker"
          config {
            image = "envoyproxy/envoy:v1.29.4"
            args  = ["-c", "${NOMAD_SECRETS_DIR}/envoy_bootstrap.json", "-l", "debug"]
          }
          resources {
            cpu    = 500
            memory = 256
          }
          logs {
            max_files = 2
          }
          shutdown_delay = "5s"
        }
      }
    }
    task "web" {
      driver = "docker"
      config {
        image = "registry.example.com/frontend:v5"
      }
    }
  }
}

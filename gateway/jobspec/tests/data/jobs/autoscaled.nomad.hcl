job "webapp" {
  datacenters = ["dc1"]

  group "demo" {
    network {
      port "webapp_http" {}
      port "toxiproxy_webapp" {}
    }

    scaling {
      enabled = true
      min     = 1
      max     = 20

      policy {
        cooldown            = "20s"
        evaluation_interval = "10s"
        on_check_error      = "fail"

        check "avg_instance_sessions" {
          source = "prometheus"
          query  = "sum(traefik_entrypoint_open_connections{entrypoint=\"webapp\"})/scalar(nomad_allocs_running{task=\"demo\"})"

          strategy "target-value" {
            target = 5
          }
        }

        check "latency" {
          source       = "prometheus"
          query        = "histogram_quantile(0.95, rate(latency_bucket[1m]))"
          query_window = "1m"

          strategy "threshold" {
            upper_bound = 0.5
            delta       = 1
          }
        }
      }
    }

    task "webapp" {
      driver = "docker"

      config {
        image = "registry.example.com/demo-webapp:v3"
        ports = ["webapp_http"]
      }

      env {
        PORT    = "${NOMAD_PORT_webapp_http}"
        NODE_IP = "${NOMAD_IP_webapp_http}"
      }

      resources {
        cpu    = 100
        memory = 16
      }

      scaling "cpu" {
        enabled = true
        min     = 50
        max     = 1000
        policy {
          cooldown = "5m"
          check "95pct" {
            strategy "app-sizing-percentile" {
              percentile = "95"
            }
          }
        }
      }

      scaling "mem" {
        max = 512
        policy {
          check "max" {
            strategy "app-sizing-max" {}
          }
        }
      }
    }
  }
}

variable "image_tag" {
  type    = string
  default = "10.4.2"
}

locals {
  dashboards = ["nodes", "jobs"]
  plugins    = join(",", ["clock-panel", "pie-chart"])
}

job "grafana" {
  datacenters = ["*"]

  group "grafana" {
    network {
      port "http" {
        to = 3000
      }
    }

    volume "state" {
      type   = "host"
      source = "grafana"
    }

    task "grafana" {
      driver = "docker"
      user   = "472"

      config {
        image = "grafana/grafana:${var.image_tag}"
        ports = ["http"]
      }

      volume_mount {
        volume      = "state"
        destination = "/var/lib/grafana"
      }

      env {
        GF_LOG_LEVEL        = "INFO"
        GF_LOG_MODE         = "console"
        GF_SERVER_HTTP_PORT = "${NOMAD_PORT_http}"
        GF_INSTALL_PLUGINS  = local.plugins
      }

      dynamic "template" {
        for_each = local.dashboards
        content {
          destination     = "local/dashboards/${template.value}.json"
          left_delimiter  = "[["
          right_delimiter = "]]"
          data            = jsonencode({ title = title(template.value), index = template.key, panels = [] })
        }
      }

      template {
        destination = "local/datasources/prometheus.yaml"
        data        = <<-EOT
          apiVersion: 1
          datasources:
            - name: Prometheus
              type: prometheus
              access: proxy
              url: http://{{ range $i, $s := service "prometheus" }}{{ if eq $i 0 }}{{ .Address }}:{{ .Port }}{{ end }}{{ end }}
              isDefault: true
        EOT
      }

      resources {
        cpu        = 200
        memory     = 256
        memory_max = 512
      }

      service {
        name = "grafana"
        port = "http"
        tags = [for name in local.dashboards : "dashboard-${name}"]

        check {
          type     = "http"
          path     = "/api/health"
          interval = "10s"
          timeout  = "2s"
        }
      }
    }
  }
}

job "autoscaler" {
  type = "service"
  datacenters = ["dc1"]
  group "autoscaler" {
    count = 1
    network {
      port "http" {}
    }
    task "autoscaler" {
      driver = "docker"
      config {
        image   = "registry.example.com/autoscaler:0.4"
        command = "autoscaler"
        args = [
          "agent",
          "-config",
          "${NOMAD_TASK_DIR}/config.hcl",
          "-http-bind-address",
          "0.0.0.0",
          "-http-bind-port",
          "${NOMAD_PORT_http}",
        ]
        ports = ["http"]
      }
      template {
        data = <<EOF
nomad {
  address = "http://{{env "attr.unique.network.ip-address" }}:4646"
}

apm "prometheus" {
  driver = "prometheus"
  config = {
    address = "http://{{ range service "prometheus" }}{{ .Address }}:{{ .Port }}{{ end }}"
  }
}

strategy "target-value" {
  driver = "target-value"
}
EOF
        destination = "${NOMAD_TASK_DIR}/config.hcl"
      }
      resources {
        cpu    = 50
        memory = 128
      }
      service {
        name = "autoscaler"
        port = "http"
        check {
          type     = "http"
          path     = "/v1/health"
          interval = "5s"
          timeout  = "2s"
        }
      }
    }
  }
}

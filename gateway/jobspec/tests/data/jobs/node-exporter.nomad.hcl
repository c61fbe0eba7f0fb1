job "node-exporter" {
  region = "global"
  type   = "system"

  constraint {
    attribute = "${attr.kernel.name}"
    operator  = "="
    value     = "linux"
  }

  update {
    max_parallel = 2
    stagger      = "30s"
  }

  group "exporter" {
    network {
      mode = "host"
      port "metrics" {
        static       = 9100
        host_network = "internal"
      }
    }

    task "node-exporter" {
      driver = "exec"

      artifact {
        source      = "https://releases.example.com/node_exporter-1.8.1.linux-${attr.cpu.arch}.tar.gz"
        destination = "local/"

        options {
          checksum = "sha256:fbadb376afa7c883f87f70795700a8a200f7fd45412532cc1938a24d41078011"
        }
      }

      config {
        command = "local/node_exporter"
        args    = ["--web.listen-address=:${NOMAD_PORT_metrics}", "--no-collector.wifi"]
      }

      resources {
        cpu    = 50
        memory = 64
      }

      service {
        name     = "node-exporter"
        port     = "metrics"
        provider = "nomad"
        tags     = ["metrics", "${node.unique.name}"]

        check {
          type     = "http"
          path     = "/metrics"
          interval = "30s"
          timeout  = "5s"
        }
      }
    }
  }
}

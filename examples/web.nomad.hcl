# Two instances, each with a port of its own, that are found under the name of their service. The shell is all they
# need: whoever has a web server at hand starts it on $NOMAD_PORT_http instead, and adds a check.
job "web" {
  type = "service"

  constraint {
    attribute = "${attr.kernel.name}"
    value     = "linux"
  }

  group "web" {
    count = 2

    network {
      port "http" {}
    }

    # GET /v1/service/web says where the instances are.
    service {
      name     = "web"
      provider = "nomad"
      port     = "http"
      tags     = ["instance-${NOMAD_ALLOC_INDEX}"]
    }

    # An instance leaves the list this long before it is stopped.
    shutdown_delay = "1s"

    restart {
      attempts = 2
      interval = "5m"
      delay    = "5s"
      mode     = "fail"
    }

    task "serve" {
      driver       = "raw_exec"
      kill_timeout = "10s"

      config {
        command = "/bin/sh"
        args = ["-c", <<-EOT
          echo "$GREETING, at $ADDRESS"
          trap 'echo stopping; exit 0' TERM INT
          while true; do
            sleep 1
          done
        EOT
        ]
      }

      env {
        GREETING = "hello from ${NOMAD_ALLOC_INDEX}"
        ADDRESS  = "${NOMAD_ADDR_http}"
      }

      logs {
        max_files     = 3
        max_file_size = 1
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}

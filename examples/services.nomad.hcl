# A web server that is found under the name of its service, as long as its check passes. Needs python3 on the node.
#
#   curl localhost:4646/v1/service/files        where the instances are
#   sojourn alloc checks ALLOC                  how their checks went
job "files" {
  type = "service"

  group "files" {
    network {
      port "http" {}
    }

    # A new version replaces the old one only once its checks pass.
    update {
      health_check     = "checks"
      min_healthy_time = "2s"
      healthy_deadline = "1m"
    }

    service {
      name     = "files"
      provider = "nomad"
      port     = "http"
      tags     = ["v1", "group-${NOMAD_GROUP_NAME}"]

      check {
        name     = "answers"
        type     = "http"
        path     = "/"
        interval = "5s"
        timeout  = "2s"

        # Three failures in a row restart the tasks of the group, but not while they are starting.
        check_restart {
          limit = 3
          grace = "10s"
        }
      }
    }

    # Clients have this long to leave an instance before it is stopped.
    shutdown_delay = "2s"

    task "serve" {
      driver = "raw_exec"

      config {
        command = "python3"
        args    = ["-m", "http.server", "--directory", "${NOMAD_TASK_DIR}", "${NOMAD_PORT_http}"]
      }

      service {
        name     = "files-port"
        provider = "nomad"
        port     = "http"

        check {
          name     = "listens"
          type     = "tcp"
          interval = "5s"
          timeout  = "2s"
        }
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}

# A container of Podman whose port is published on the node. The image is pulled from its registry unless the engine has it.
job "redis" {
  type = "service"

  group "cache" {
    network {
      port "db" {
        to = 6379
      }
    }

    restart {
      attempts = 2
      interval = "5m"
      delay    = "15s"
      mode     = "fail"
    }

    task "redis" {
      driver       = "podman"
      kill_timeout = "10s"

      config {
        image = "docker.io/library/redis:7"
        ports = ["db"]
        args  = ["redis-server", "--dir", "/local"]

        ulimit {
          nofile = "4096:8192"
        }

        labels {
          alloc = "${NOMAD_SHORT_ALLOC_ID}"
        }
      }

      resources {
        cpu    = 200
        memory = 128
      }
    }
  }
}

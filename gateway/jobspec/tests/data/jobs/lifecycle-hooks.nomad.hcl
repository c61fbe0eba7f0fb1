job "app" {
  datacenters = ["dc1"]

  group "app" {
    shutdown_delay = "10s"

    task "wait-for-db" {
      driver = "exec"

      lifecycle {
        hook    = "prestart"
        sidecar = false
      }

      config {
        command = "sh"
        args    = ["-c", "while ! nc -z db.service.consul 5432; do sleep 1; done"]
      }
    }

    task "log-shipper" {
      driver = "docker"

      lifecycle {
        hook    = "prestart"
        sidecar = true
      }

      config {
        image = "fluent/fluent-bit:3.0"
      }

      resources {
        cpu    = 50
        memory = 64
      }
    }

    task "main" {
      driver = "exec"
      leader = true

      config {
        command = "local/app"
      }

      kill_timeout   = "30s"
      kill_signal    = "SIGTERM"
      shutdown_delay = "3s"
    }

    task "announce" {
      driver = "exec"
      lifecycle {
        hook = "poststart"
      }
      config {
        command = "/usr/local/bin/announce"
      }
    }

    task "cleanup" {
      driver = "exec"
      lifecycle {
        hook = "poststop"
      }
      config {
        command = "/bin/rm"
        args    = ["-rf", "${NOMAD_ALLOC_DIR}/scratch"]
      }
    }
  }
}

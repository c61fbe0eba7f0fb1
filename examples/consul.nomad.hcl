# A service that Consul knows, with a check that runs inside of its task. The agent needs a `consul` block.
job "consul" {
  group "g" {
    network {
      port "http" {}
    }

    task "web" {
      driver = "raw_exec"

      config {
        command = "python3"
        args    = ["-m", "http.server", "${NOMAD_PORT_http}"]
      }

      template {
        data        = "greeting = {{ keyOrDefault \"web/greeting\" \"hello\" }}\n"
        destination = "local/app.conf"
      }

      service {
        name     = "web"
        provider = "consul"
        port     = "http"
        tags     = ["v1"]

        check {
          type     = "http"
          path     = "/"
          interval = "10s"
          timeout  = "2s"
        }

        check {
          name     = "configured"
          type     = "script"
          command  = "/bin/sh"
          args     = ["-c", "test -s $NOMAD_TASK_DIR/app.conf"]
          interval = "30s"
          timeout  = "5s"
        }
      }
    }
  }
}

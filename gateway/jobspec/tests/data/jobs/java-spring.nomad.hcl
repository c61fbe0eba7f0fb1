job "orders" {
  datacenters = ["dc1"]
  priority    = 75

  group "orders" {
    count = 2

    network {
      port "http" {}
      port "jmx" {}
    }

    task "orders" {
      driver = "java"

      config {
        jar_path    = "local/orders.jar"
        jvm_options = ["-Xmx512m", "-Xms256m", "-Dcom.sun.management.jmxremote.port=${NOMAD_PORT_jmx}"]
        args        = ["--server.port=${NOMAD_PORT_http}"]
      }

      artifact {
        source = "s3::https://s3.eu-central-1.amazonaws.com/artifacts/orders.jar"
        mode   = "file"

        options {
          aws_access_key_id     = "AKIAEXAMPLE"
          aws_access_key_secret = "example"
          region                = "eu-central-1"
        }
      }

      resources {
        cpu    = 750
        memory = 768
      }

      kill_signal  = "SIGINT"
      kill_timeout = "45s"

      service {
        name = "orders"
        port = "http"
        tags = ["urlprefix-/orders"]

        check {
          type     = "http"
          path     = "/actuator/health"
          interval = "15s"
          timeout  = "3s"

          header {
            Authorization = ["Basic dXNlcjpwdw=="]
            X-Probe       = ["yes", "really"]
          }

          check_restart {
            limit           = 3
            grace           = "90s"
            ignore_warnings = false
          }
        }
      }
    }
  }
}

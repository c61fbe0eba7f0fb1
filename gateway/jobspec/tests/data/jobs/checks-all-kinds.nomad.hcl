job "checked" {
  group "g" {
    network {
      port "grpc" {}
      port "http" {}
    }
    service {
      name = "checked"
      port = "http"
      task = "t"
      check_restart {
        limit = 5
        grace = "30s"
      }
      check {
        type            = "grpc"
        port            = "grpc"
        grpc_service    = "health.v1"
        grpc_use_tls    = true
        tls_skip_verify = true
        tls_server_name = "checked.internal"
        interval        = "5s"
        timeout         = "1s"
      }
      check {
        name           = "script"
        type           = "script"
        command        = "/bin/check"
        args           = ["-q"]
        task           = "t"
        interval       = "1m"
        timeout        = "10s"
        initial_status = "passing"
        on_update      = "ignore"
        check_restart {
          limit           = 1
          ignore_warnings = true
        }
      }
      check {
        name                     = "post"
        type                     = "http"
        protocol                 = "https"
        method                   = "POST"
        path                     = "/check"
        body                     = "{\"deep\": true}"
        address_mode             = "host"
        interval                 = "10s"
        timeout                  = "2s"
        success_before_passing   = 2
        failures_before_critical = 3
        failures_before_warning  = 1
        notes                    = "asks everything"
      }
    }
    task "t" {
      driver = "exec"
      config {
        command = "/bin/server"
      }
      service {
        tags         = ["${NOMAD_ALLOC_ID}"]
        port         = "grpc"
        address_mode = "driver"
      }
    }
  }
}

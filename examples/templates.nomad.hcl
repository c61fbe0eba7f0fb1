# A task whose configuration comes from a variable and from the instances of a service.
#
#   sojourn var put nomad/jobs/greeter greeting=hello     the task waits until there is one
#   sojourn var put -force nomad/jobs/greeter greeting=hi and it is restarted when it changes
job "greeter" {
  type = "service"

  group "main" {
    network {
      port "http" {}
    }

    service {
      name     = "greeter"
      provider = "nomad"
      port     = "http"
    }

    task "greet" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "echo \"$GREETING\"; cat ${NOMAD_TASK_DIR}/greeter.conf; exec tail -f /dev/null"]
      }

      # Lines of variables for the environment.
      template {
        destination = "${NOMAD_SECRETS_DIR}/greeting.env"
        env         = true
        data        = <<-EOF
        GREETING={{ with nomadVar "nomad/jobs/greeter" }}{{ .greeting | toJSON }}{{ end }}
        EOF
      }

      # A task reads the variables below its job's path without any policy, and finds the services of its namespace.
      template {
        destination = "local/greeter.conf"
        perms       = "0600"
        change_mode = "noop"
        data        = <<-EOF
        job = {{ env "NOMAD_JOB_NAME" }}
        {{- range nomadService "greeter" }}
        peer = {{ .Address }}:{{ .Port }}
        {{- end }}
        EOF
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}

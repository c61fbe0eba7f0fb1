# A task that is given a secret of the cluster, and reads another one itself:
#   sojourn var put nomad/jobs/secrets password=one
job "secrets" {
  type = "batch"

  group "g" {
    task "reader" {
      driver = "raw_exec"

      identity {
        env = true
      }

      secret "own" {
        provider = "nomad"
        path     = "nomad/jobs/secrets"
      }

      env {
        PASSWORD = "${secret.own.password}"
      }

      config {
        command = "/bin/sh"
        args    = ["-c", "echo a password of $(printf %s \"$PASSWORD\" | wc -c) characters; ls -l $NOMAD_SECRETS_DIR/api.sock"]
      }
    }
  }
}

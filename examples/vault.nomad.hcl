# A task with a token of Vault, and a file with a password that Vault makes for it. The agents need a vault block:
# docs/vault.md shows one, and what Vault has to know of the cluster.
job "vault" {
  group "g" {
    task "app" {
      driver = "raw_exec"

      vault {
        role        = "app"
        change_mode = "restart"
      }

      # Unless the servers add it by themselves (vault.default_identity).
      identity {
        name = "vault_default"
        aud  = ["vault.io"]
        ttl  = "1h"
      }

      secret "key" {
        provider = "vault"
        path     = "secret/app"
        config {
          engine = "kv_v2"
        }
      }

      template {
        destination = "secrets/db.env"
        env         = true
        data        = <<-EOT
          {{ with secret "database/creds/app" }}
          DB_USER={{ .Data.username }}
          DB_PASSWORD={{ .Data.password }}
          {{ end }}
        EOT
      }

      env {
        KEY = "${secret.key.value}"
      }

      config {
        command = "/bin/sh"
        args    = ["-c", "echo user $DB_USER; exec sleep 3600"]
      }
    }
  }
}

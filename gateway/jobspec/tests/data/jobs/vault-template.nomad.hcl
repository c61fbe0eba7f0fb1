job "billing" {
  datacenters = ["dc1"]

  vault {
    cluster = "default"
    role    = "billing"
  }

  group "billing" {
    task "api" {
      driver = "docker"

      vault {
        role          = "billing-api"
        change_mode   = "signal"
        change_signal = "SIGUSR1"
        env           = false
      }

      identity {
        name = "vault_default"
        aud  = ["vault.io"]
        ttl  = "1h"
        env  = false
        file = true
      }

      config {
        image = "registry.example.com/billing:${meta.release}"
      }

      template {
        data = <<EOT
{{ with secret "database/creds/billing" }}
DB_USER={{ .Data.username }}
DB_PASS={{ .Data.password | toJSON }}
{{ end }}
EOT

        destination = "${NOMAD_SECRETS_DIR}/db.env"
        env         = true
        perms       = "0600"
      }
    }

    task "worker" {
      driver = "docker"

      config {
        image = "registry.example.com/billing-worker:1"
      }
    }
  }
}

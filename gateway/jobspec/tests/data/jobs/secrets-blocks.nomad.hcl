job "secretive" {
  group "app" {
    secret "shared" {
      provider = "nomad"
      path     = "nomad/jobs/secretive"
      config {
        namespace = "default"
      }
    }

    task "app" {
      driver = "docker"

      vault {}

      secret "db" {
        provider = "vault"
        path     = "secret/data/db"
        config {
          engine = "kv_v2"
        }
      }

      secret "cloud" {
        provider = "aws-secrets"
        path     = "prod/app"
        env {
          AWS_REGION = "eu-central-1"
        }
      }

      config {
        image = "registry.example.com/app:1"
      }

      env {
        DB_PASSWORD = "${secret.db.password}"
      }
    }
  }
}

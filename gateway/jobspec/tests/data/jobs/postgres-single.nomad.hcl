job "postgres" {
  datacenters = ["dc1"]
  namespace   = "databases"
  priority    = 90

  group "db" {
    volume "pg" {
      type            = "host"
      source          = "pg"
      read_only       = false
      sticky          = true
      access_mode     = "single-node-writer"
      attachment_mode = "file-system"
    }

    network {
      mode = "bridge"
      port "pg" {
        static = 5432
      }
    }

    service {
      name     = "postgres"
      provider = "nomad"
      port     = "pg"
      check {
        type     = "tcp"
        interval = "10s"
        timeout  = "2s"
      }
    }

    task "chown" {
      driver = "docker"
      user   = "root"
      lifecycle {
        hook = "prestart"
      }
      volume_mount {
        volume      = "pg"
        destination = "/var/lib/postgresql/data"
      }
      config {
        image   = "busybox:1.36"
        command = "chown"
        args    = ["-R", "999:999", "/var/lib/postgresql/data"]
      }
    }

    task "postgres" {
      driver = "docker"
      volume_mount {
        volume           = "pg"
        destination      = "/var/lib/postgresql/data"
        propagation_mode = "private"
      }
      template {
        destination = "secrets/pg.env"
        env         = true
        change_mode = "restart"
        data        = <<EOF
{{- with nomadVar "nomad/jobs/postgres" -}}
POSTGRES_USER={{ .user }}
POSTGRES_PASSWORD={{ .password }}
{{- end -}}
EOF
      }
      config {
        image = "postgres:16"
        ports = ["pg"]
      }
      resources {
        cpu    = 1000
        memory = 2048
      }
    }
  }
}

job "minio" {
  datacenters = ["dc1"]
  group "storage" {
    count = 1
    network {
      mode = "bridge"
      port "api" { to = 9000 }
      port "console" { to = 9001 }
    }
    volume "minio" {
      type   = "host"
      source = "minio"
    }
    service {
      name = "minio"
      port = "api"
      tags = [
        "traefik.enable=true",
        "traefik.http.routers.minio.rule=Host(`s3.example.com`)",
      ]
      check {
        name     = "live"
        type     = "http"
        path     = "/minio/health/live"
        interval = "10s"
        timeout  = "2s"
      }
    }
    task "minio" {
      driver = "docker"
      config {
        image = "minio/minio"
        args  = ["server", "/data", "--console-address", ":9001"]
        ports = ["api", "console"]
      }
      env {
        MINIO_ROOT_USER     = "admin"
        MINIO_ROOT_PASSWORD = "changeme"
      }
      volume_mount {
        volume      = "minio"
        destination = "/data"
      }
    }
  }
}

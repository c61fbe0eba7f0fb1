# Keeps its data on a volume that was made on a node:
#
#   sojourn volume create examples/data.volume.hcl
#   sojourn job run examples/volume.nomad.hcl
job "keeper" {
  group "keeper" {
    volume "data" {
      type   = "host"
      source = "data"
    }

    task "keeper" {
      driver = "exec"

      volume_mount {
        volume      = "data"
        destination = "/data"
      }

      config {
        command = "/bin/sh"
        args    = ["-c", "date >> /data/starts; exec tail -f /data/starts"]
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}

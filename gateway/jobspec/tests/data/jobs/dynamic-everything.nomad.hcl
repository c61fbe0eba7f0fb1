variable "services" {
  description = "What each service listens on and how many there are."
  type = map(object({
    port  = number
    count = number
    tags  = list(string)
    env   = map(string)
  }))
  default = {
    users = {
      port  = 7001
      count = 2
      tags  = ["http", "v1"]
      env   = { CACHE = "on" }
    }
    search = {
      port  = 7002
      count = 1
      tags  = []
      env   = {}
    }
  }
}

variable "disks" {
  type    = list(string)
  default = ["data", "logs"]
}

job "platform" {
  datacenters = ["dc1"]

  dynamic "constraint" {
    for_each = ["linux", "x86_64"]
    content {
      attribute = "${constraint.key == 0 ? "$${attr.kernel.name}" : "$${attr.cpu.arch}"}"
      value     = constraint.value
    }
  }

  dynamic "group" {
    for_each = var.services
    iterator = svc
    labels   = ["svc-${svc.key}"]

    content {
      count = svc.value.count

      network {
        dynamic "port" {
          for_each = { main = svc.value.port, admin = svc.value.port + 1000 }
          labels   = [port.key]
          content {
            to = port.value
          }
        }
      }

      dynamic "volume" {
        for_each = var.disks
        labels   = [volume.value]
        content {
          type   = "host"
          source = "${svc.key}-${volume.value}"
        }
      }

      task "app" {
        driver = "docker"

        config {
          image = "registry.example.com/${svc.key}:latest"
          ports = ["main", "admin"]

          dynamic "mount" {
            for_each = var.disks
            content {
              type   = "volume"
              source = mount.value
              target = "/mnt/${mount.value}"
            }
          }
        }

        dynamic "volume_mount" {
          for_each = var.disks
          content {
            volume      = volume_mount.value
            destination = "/srv/${volume_mount.value}"
          }
        }

        env = merge({ SERVICE = svc.key }, svc.value.env)

        service {
          name = svc.key
          port = "main"
          tags = concat(svc.value.tags, ["all"])
        }
      }
    }
  }
}

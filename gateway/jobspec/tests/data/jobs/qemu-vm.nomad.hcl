job "legacy-vm" {
  datacenters = ["dc1"]

  group "vm" {
    network {
      port "ssh" {}
    }

    task "vm" {
      driver = "qemu"

      artifact {
        source      = "https://images.example.com/debian-12.img"
        destination = "local/images"

        headers {
          User-Agent   = "orchestrator"
          X-Auth-Token = "${NOMAD_META_TOKEN}"
        }
      }

      config {
        image_path        = "local/images/debian-12.img"
        accelerator       = "kvm"
        graceful_shutdown = true
        guest_agent       = true
        args              = ["-nodefaults", "-nodefconfig"]
        port_map {
          ssh = 22
        }
      }

      resources {
        cpu    = 2000
        memory = 2048
      }
    }
  }
}

# A virtual machine. The image is fetched into the task's directory; the guest reacts to its power button.
job "machine" {
  group "g" {
    network {
      port "ssh" {}
    }

    task "machine" {
      driver       = "qemu"
      kill_timeout = "30s"

      artifact {
        source      = "https://cloud.debian.org/images/cloud/bookworm/latest/debian-12-nocloud-amd64.qcow2"
        destination = "local/debian.qcow2"
        mode        = "file"
      }

      config {
        image_path        = "local/debian.qcow2"
        accelerator       = "kvm" # tcg where the host has none: slower
        drive_interface   = "virtio"
        graceful_shutdown = true
        port_map {
          ssh = 22
        }
      }

      resources {
        cpu    = 1000
        memory = 1024
      }
    }
  }
}

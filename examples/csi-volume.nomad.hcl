# A job with a volume of a storage plugin. The volume has to be there first: volume.hcl is
#
#   id        = "database"
#   name      = "database"
#   type      = "csi"
#   plugin_id = "hostpath"
#   capacity_min = "1GiB"
#   capability {
#     access_mode     = "single-node-writer"
#     attachment_mode = "file-system"
#   }
#
# and "sojourn volume create volume.hcl" has the plugin make it.
job "database" {
  group "db" {
    volume "data" {
      type            = "csi"
      source          = "database"
      access_mode     = "single-node-writer"
      attachment_mode = "file-system"

      mount_options {
        mount_flags = ["noatime"]
      }
    }

    task "db" {
      driver = "exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "date >> /data/starts; cat /data/starts; sleep 3600"]
      }

      volume_mount {
        volume      = "data"
        destination = "/data"
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}

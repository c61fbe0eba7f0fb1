# A volume of a storage plugin. "sojourn volume create" has the plugin make it;
# "sojourn volume register" takes one that is there (external_id).
id        = "ebs_prod_db1"
name      = "database"
type      = "csi"
plugin_id = "ebs-prod"

# external_id = "vol-23452345"
# snapshot_id = "snap-12345"   # made from this snapshot
# clone_id    = "vol-abcdef"   # made from this volume

capacity_min = "10GiB"
capacity_max = "20GiB"

# How jobs may use it. At least one.
capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}

capability {
  access_mode     = "single-node-reader-only"
  attachment_mode = "file-system"
}

mount_options {
  fs_type     = "ext4"
  mount_flags = ["noatime"]
}

# Where it has to be reached from.
topology_request {
  required {
    topology {
      segments = {
        "rack" = "R1"
      }
    }
  }
}

# What the plugin wants to know when it makes the volume.
parameters = {
  skuname = "Premium_LRS"
}

# Secrets for the plugin are kept as the variable csi/ebs_prod_db1, sealed. They may also be put there:
#   sojourn var put csi/ebs_prod_db1 key=value

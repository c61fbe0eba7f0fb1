# A directory that is made on a node.
name      = "database"
type      = "host"
plugin_id = "mkdir"

capacity_min = "10GiB"
capacity_max = "20GiB"

capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}

parameters = {
  mode = "0770"
}

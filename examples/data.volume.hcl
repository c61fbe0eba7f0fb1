name      = "data"
type      = "host"
plugin_id = "mkdir"

capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}

# The task runs as nobody.
parameters {
  mode = "0777"
}

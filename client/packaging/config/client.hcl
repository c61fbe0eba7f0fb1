# A node: what sojourn.service runs. Start it with: systemctl enable --now sojourn

data_dir = "/var/lib/sojourn"

# Who may reach its HTTP API: this host alone. Without this line everybody may.
bind_addr = "127.0.0.1"

client {
  enabled = true
  servers = ["127.0.0.1:4647"]   # the cluster's servers, by their RPC address
}

# Beside a server on one host, the node needs a port of its own for HTTP.
ports {
  http = 4656
}

# Processes without any isolation, as the agent's user: only for those whom you trust with this host.
# plugin "raw_exec" {
#   config { enabled = true }
# }

# A server: what sojourn-server.service runs. Start it with: systemctl enable --now sojourn-server

data_dir = "/var/lib/sojourn-server"

# Who may reach it: this host alone. Other servers and nodes need an address that they can reach, and then `tls` or `encrypt`, and
# `acl`, are what keeps strangers out. Without this line everybody may reach it.
bind_addr = "127.0.0.1"

server {
  enabled          = true
  bootstrap_expect = 1   # how many servers found the cluster together: 1, 3 or 5

  # For more than one: the same key on all (sojourn operator gossip keyring generate), and where the others are.
  # encrypt = ""
  # server_join { retry_join = ["10.0.0.1", "10.0.0.2", "10.0.0.3"] }
}

# Nobody changes anything without a token: sojourn acl bootstrap makes the first.
# acl { enabled = true }

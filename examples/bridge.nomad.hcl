# A web server in a network of its own. It listens on port 8080 there, and the host has a port that leads to it.
# Needs an agent that is root, and python3 on the node.
#
#   sojourn alloc status ALLOC                  which port of the host it is
#   curl 127.0.0.1:PORT
#   sojourn alloc exec ALLOC ip address         the address inside
job "bridged" {
  type = "service"

  group "web" {
    network {
      mode = "bridge"

      port "http" {
        to = 8080
      }

      # Only allocations of this job reach it directly; the port of the host is open to all. Nomad has no such key.
      isolation = "job"
    }

    service {
      name     = "bridged"
      provider = "nomad"
      port     = "http"

      # The address inside, which the host of the allocation reaches.
      address_mode = "alloc"

      check {
        name     = "answers"
        type     = "http"
        path     = "/"
        interval = "2s"
        timeout  = "2s"
      }
    }

    task "serve" {
      driver = "raw_exec"

      config {
        command = "python3"
        args    = ["-m", "http.server", "--directory", "${NOMAD_TASK_DIR}", "8080"]
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}

job "podman" {
  group "redis" {
    network {
      mode = "cni/mynet"
      port "redis" { to = 6379 }
      cni {
        args = {
          NODE_NAME = "redis"
        }
      }
    }
    task "redis" {
      driver = "podman"
      config {
        image = "docker://redis:7"
        ports = ["redis"]
        tmpfs = ["/tmp"]
        logging = {
          driver  = "journald"
          options = [{ tag = "redis" }]
        }
      }
    }
  }
}

job "old" {
  datacenters = ["dc1"]
  group "old" {
    task "old" {
      driver = "docker"
      config {
        image = "redis:3.2"
        port_map {
          db = 6379
        }
      }
      resources {
        cpu    = 500
        memory = 256
        network {
          mbits = 10
          port "db" {}
          port "admin" {
            static = "9000"
          }
        }
      }
      service {
        name = "old-${TASKGROUP}-${TASK}"
        port = "db"
      }
      logs {
        enabled = false
      }
    }
  }
}

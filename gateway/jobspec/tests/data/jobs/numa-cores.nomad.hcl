job "trading" {
  group "engine" {
    task "engine" {
      driver = "exec"
      config {
        command = "engine"
      }
      resources {
        cores  = 4
        memory = 4096
        numa {
          affinity = "require"
        }
      }
    }
  }
}

job "docker-prune" {
  type = "sysbatch"

  periodic {
    cron             = "@weekly"
    prohibit_overlap = true
    enabled          = true
  }

  group "prune" {
    task "prune" {
      driver = "raw_exec"
      config {
        command = "docker"
        args    = ["system", "prune", "-af"]
      }
      resources {
        cpu    = 20
        memory = 32
      }
    }
  }
}

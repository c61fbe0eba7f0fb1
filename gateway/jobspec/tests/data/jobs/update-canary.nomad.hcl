job "rollout" {
  update {
    max_parallel      = 2
    health_check      = "task_states"
    canary            = 2
    auto_promote      = true
    auto_revert       = true
    stagger           = "45s"
    progress_deadline = 0
  }

  group "inherits" {
    count = 6
    task "a" {
      driver = "raw_exec"
      config {
        command = "/bin/a"
      }
    }
  }

  group "overrides" {
    count = 4
    update {
      canary       = 4
      max_parallel = 4
      auto_promote = false
    }
    task "b" {
      driver = "raw_exec"
      config {
        command = "/bin/b"
      }
    }
  }
}

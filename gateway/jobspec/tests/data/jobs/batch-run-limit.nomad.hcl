job "limited" {
  type        = "batch"
  all_at_once = true
  reschedule {
    attempts = 0
  }
  group "g" {
    max_run_duration = "15m"
    task "t" {
      driver = "raw_exec"
      config { command = "/bin/long" }
    }
  }
}

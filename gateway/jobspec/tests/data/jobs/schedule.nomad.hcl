job "office-hours" {
  group "reports" {
    task "reports" {
      driver = "raw_exec"
      schedule {
        cron {
          start    = "0 9 * * MON-FRI *"
          end      = "0 17"
          timezone = "America/New_York"
        }
      }
      config {
        command = "/bin/reports"
      }
    }
  }
}

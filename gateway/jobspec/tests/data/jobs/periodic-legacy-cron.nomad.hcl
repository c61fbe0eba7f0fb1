job "sweep" {
  datacenters = ["dc1"]
  type        = "batch"

  periodic {
    cron             = "*/15 * * * * *"
    prohibit_overlap = true
  }

  group "sweep" {
    task "sweep" {
      driver = "raw_exec"
      config {
        command = "/usr/bin/find"
        args    = ["/tmp", "-mtime", "+7", "-delete"]
      }
    }
  }
}

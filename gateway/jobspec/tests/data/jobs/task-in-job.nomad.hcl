job "lone" {
  type = "batch"
  task "only" {
    driver = "raw_exec"
    config {
      command = "/bin/true"
    }
  }
}

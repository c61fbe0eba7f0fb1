job "hello" {
  type = "batch"
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo \"hello from $NOMAD_TASK_NAME\"; sleep 1"]
      }
    }
  }
}

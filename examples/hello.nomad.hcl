# The smallest job that stays: it says where it runs, then waits to be stopped.
job "hello" {
  type = "service"

  group "hello" {
    task "say" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "echo \"hello from $NOMAD_ALLOC_NAME on ${node.unique.name}\"; exec tail -f /dev/null"]
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}

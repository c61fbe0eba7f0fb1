# A job: what is to run, and how. `job run FILE` registers it.
job "example" {
  # service: runs on and on. batch: runs to its end. system: once on every node. sysbatch: both of the latter.
  type = "service"

  # How new versions take the place of old ones: one allocation at a time, each healthy for ten seconds.
  update {
    max_parallel     = 1
    min_healthy_time = "10s"
    healthy_deadline = "3m"
    auto_revert      = true
  }

  # Allocations of a group run on one node, together.
  group "hello" {
    count = 1

    # Ports that the group is given, by name.
    network {
      port "web" {}
    }

    # What happens when a task ends badly: it is started again here, a few times.
    restart {
      attempts = 2
      interval = "30m"
      delay    = "15s"
      mode     = "fail"
    }

    task "say" {
      # A program of the node itself, without isolation. A development agent has this driver on; other agents need
      # `plugin "raw_exec" { config { enabled = true } }`.
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "while true; do echo \"hello from $NOMAD_ALLOC_NAME, port $NOMAD_PORT_web\"; sleep 10; done"]
      }

      # MHz and MiB that are set aside for the task.
      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}

# A process that is kept apart from its host: own processes, own root, the user nobody. The node's agent runs as root.
job "apart" {
  type = "batch"

  group "g" {
    task "look" {
      driver = "exec"

      config {
        command  = "/bin/sh"
        args     = ["-c", "id; pwd; ls / /local; echo process $$; cat /proc/1/cmdline | tr '\\0' ' '"]
        cap_drop = ["all"]
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}

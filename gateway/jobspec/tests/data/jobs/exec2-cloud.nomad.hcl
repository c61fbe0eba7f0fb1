job "env" {
  group "group" {
    task "task" {
      driver = "exec2"
      config {
        command = "env"
        unveil  = ["r:/etc/mime.types"]
      }
      resources {
        cpu     = 100
        memory  = 64
        secrets = 4
      }
    }
  }
}

job "store" {
  ui {
    description = "Keeps *everything*. Ask the storage team."
    link {
      label = "Runbook"
      url   = "https://wiki.example.com/store"
    }
    link {
      label = "Dashboards"
      url   = "https://grafana.example.com/d/store"
    }
  }

  group "store" {
    task "store" {
      driver = "docker"
      config {
        image = "registry.example.com/store:9"
      }

      action "flush" {
        command = "/usr/bin/store-cli"
        args    = ["flush", "--all"]
      }

      action "version" {
        command = "/usr/bin/store-cli"
        args    = ["--version"]
      }
    }
  }
}

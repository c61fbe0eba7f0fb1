job "edge" {
  datacenters = ["edge-*"]
  node_pool   = "edge"

  group "cache" {
    count = 4

    disconnect {
      lost_after = "6h"
      replace    = false
      reconcile  = "keep_original"
    }

    reschedule {
      delay          = "30s"
      delay_function = "fibonacci"
      max_delay      = "10m"
      unlimited      = true
    }

    task "varnish" {
      driver = "docker"
      config {
        image = "varnish:7"
      }
    }
  }

  group "sensor" {
    disconnect {
      stop_on_client_after = "5m"
    }
    task "sensor" {
      driver = "raw_exec"
      config {
        command = "/opt/sensor"
      }
    }
  }
}

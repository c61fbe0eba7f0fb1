job "worldwide" {
  multiregion {
    strategy {
      max_parallel = 1
      on_failure   = "fail_all"
    }

    region "west" {
      count       = 2
      datacenters = ["west-1"]
      meta {
        my-key = "my-value-west"
      }
    }

    region "east" {
      count       = 5
      datacenters = ["east-1", "east-2"]
      node_pool   = "big"
    }
  }

  group "web" {
    count = 0
    task "web" {
      driver = "docker"
      config {
        image = "nginx"
      }
    }
  }
}

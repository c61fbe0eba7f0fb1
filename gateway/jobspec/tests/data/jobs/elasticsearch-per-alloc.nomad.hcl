job "elasticsearch" {
  group "es" {
    count = 3
    volume "data" {
      type            = "csi"
      source          = "es-data"
      per_alloc       = true
      access_mode     = "single-node-writer"
      attachment_mode = "file-system"
    }
    network {
      port "rest" {}
      port "transport" {}
    }
    task "es" {
      driver = "docker"
      config {
        image = "elasticsearch:8.13.0"
        ports = ["rest", "transport"]
        args = [
          "-Enode.name=es-${NOMAD_ALLOC_INDEX}",
          "-Ecluster.initial_master_nodes=es-0,es-1,es-2",
        ]
        ulimit = {
          nofile  = "65536:65536"
          memlock = "-1:-1"
        }
      }
      volume_mount {
        volume      = "data"
        destination = "/usr/share/elasticsearch/data"
      }
      resources {
        cpu    = 2000
        memory = 4096
      }
      env {
        ES_JAVA_OPTS = "-Xms2g -Xmx2g"
      }
    }
  }
}

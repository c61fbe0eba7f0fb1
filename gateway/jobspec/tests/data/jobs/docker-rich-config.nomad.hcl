job "rich" {
  datacenters = ["dc1"]

  group "rich" {
    network {
      mode     = "bridge"
      hostname = "rich.internal"
      port "http" {
        to = 8080
      }
      port "range" {
        static           = 5000
        to               = 5000
        ignore_collision = false
      }
      dns {
        servers  = ["10.0.0.2", "1.1.1.1"]
        searches = ["internal"]
        options  = ["ndots:2"]
      }
    }

    task "rich" {
      driver = "docker"

      config {
        image              = "registry.example.com/rich@sha256:0b1d"
        image_pull_timeout = "10m"
        force_pull         = true
        entrypoint         = ["/bin/sh", "-c"]
        command            = "exec server"
        cap_add            = ["net_raw"]
        cap_drop           = ["mknod"]
        cpu_hard_limit     = true
        cpu_cfs_period     = 100000
        memory_hard_limit  = 512
        pids_limit         = 100
        readonly_rootfs    = true
        init               = true
        interactive        = false
        security_opt       = ["no-new-privileges"]
        storage_opt = {
          size = "40G"
        }
        sysctl = {
          "net.core.somaxconn" = "16384"
        }
        extra_hosts = ["db:10.1.1.1"]

        auth {
          username       = "robot"
          password       = "hunter2"
          server_address = "registry.example.com"
        }

        labels {
          team                 = "platform"
          commit               = "abc"
        }

        labels {
          second = "block"
        }

        logging {
          type = "journald"
          config {
            tag    = "rich"
            labels = "team"
          }
        }

        mount {
          type     = "bind"
          source   = "local/etc"
          target   = "/etc/rich"
          readonly = true
          bind_options {
            propagation = "rshared"
          }
        }

        mount {
          type   = "tmpfs"
          target = "/scratch"
          tmpfs_options {
            size = 100000000
            mode = 0755
          }
        }

        mounts = [
          {
            type   = "volume"
            target = "/data"
            volume_options = {
              no_copy = false
              driver_config = {
                name = "local"
              }
            }
          }
        ]

        devices = [
          {
            host_path      = "/dev/sda1"
            container_path = "/dev/xvdc"
          },
        ]

        healthchecks {
          disable = true
        }
      }

      resources {
        cpu    = 500
        memory = 512
      }
    }
  }
}

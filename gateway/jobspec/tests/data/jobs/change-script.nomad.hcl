job "haproxy" {
  datacenters = ["dc1"]
  type        = "service"

  group "haproxy" {
    network {
      port "http" {
        static = 80
      }
      port "stats" {
        static = 1936
      }
    }

    task "haproxy" {
      driver = "docker"

      config {
        image        = "haproxy:2.9"
        network_mode = "host"
        volumes      = ["local/haproxy.cfg:/usr/local/etc/haproxy/haproxy.cfg"]
      }

      template {
        change_mode = "script"
        change_script {
          command             = "/bin/check"
          args                = ["-c", "/usr/local/etc/haproxy/haproxy.cfg"]
          timeout             = "20s"
          fail_on_error       = true
          run_on_first_render = true
        }
        wait {
          min = "5s"
          max = "1m"
        }
        data = <<-EOF
          defaults
             mode http

          frontend stats
             bind *:1936
             stats uri /
             no log

          backend http_back
              balance roundrobin
              server-template mywebapp 10 _demo-webapp._tcp.service.consul resolvers consul resolve-opts allow-dup-ip check

          resolvers consul
            nameserver consul 127.0.0.1:8600
            accepted_payload_size 8192
            hold valid 5s
        EOF

        destination = "local/haproxy.cfg"
      }

      template {
        source        = "local/reload.tpl"
        destination   = "local/reload.conf"
        change_mode   = "signal"
        change_signal = "sighup"
        splay         = "30s"
        uid           = 1000
        gid           = 1000
        once          = false
      }

      resources {
        cpu    = 200
        memory = 128
      }
    }
  }
}

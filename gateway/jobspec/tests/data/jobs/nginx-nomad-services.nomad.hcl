job "nginx" {
  datacenters = ["dc1"]
  group "nginx" {
    count = 1
    network {
      port "http" { static = 8080 }
    }
    service {
      name     = "nginx"
      port     = "http"
      provider = "nomad"
      address  = "203.0.113.7"
      weights {
        passing = 5
      }
      tagged_addresses {
        wan = "203.0.113.7"
      }
      canary_tags = ["canary"]
      canary_meta {
        stage = "canary"
      }
      enable_tag_override = true
      on_update           = "ignore_warnings"
    }
    task "nginx" {
      driver = "docker"
      config {
        image = "nginx"
        ports = ["http"]
        volumes = ["local:/etc/nginx/conf.d"]
      }
      template {
        data = <<EOF
upstream backend {
{{ range nomadService "demo-webapp" }}
  server {{ .Address }}:{{ .Port }};
{{ else }}server 127.0.0.1:65535; # none
{{ end }}
}

server {
   listen 8080;
   location / {
      proxy_pass http://backend;
      proxy_set_header Host $host;
   }
}
EOF
        destination   = "local/load-balancer.conf"
        change_mode   = "signal"
        change_signal = "SIGHUP"
      }
    }
  }
}

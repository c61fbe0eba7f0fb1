variable "token" {
  type    = string
  default = ""
}

job "gitlab-runner" {
  datacenters = ["dc1"]
  group "runner" {
    count = 1
    task "runner" {
      driver = "docker"
      config {
        image   = "gitlab/gitlab-runner:alpine"
        volumes = ["/var/run/docker.sock:/var/run/docker.sock", "local/config.toml:/etc/gitlab-runner/config.toml"]
      }
      template {
        destination = "local/config.toml"
        data        = <<EOF
concurrent = 4
check_interval = 0

[[runners]]
  name = "docker-${var.token == "" ? "anonymous" : "known"}"
  url = "https://gitlab.example.com"
  token = "${var.token}"
  executor = "docker"
  [runners.docker]
    image = "alpine"
EOF
      }
    }
  }
}

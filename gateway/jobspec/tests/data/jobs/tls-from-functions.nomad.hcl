locals {
  users   = csvdecode("name,shell\nann,/bin/zsh\nbob,/bin/bash\n")
  conf    = yamldecode("limits:\n  cpu: 200\n  memory: 128\nhosts: [a, b]\n")
  subnets = [for i in range(3) : cidrsubnet("10.0.0.0/16", 8, i)]
}

job "computed" {
  type = "batch"
  group "g" {
    count = length(local.subnets)
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
        args    = [for u in local.users : format("%-5s|%s", u.name, u.shell)]
      }
      env {
        SUBNETS = join(",", local.subnets)
        HOSTS   = yamlencode(local.conf.hosts)
        DIGEST  = sha256("config")
        BEST    = try(local.conf.nothing.here, "fallback")
        EXPIRES = timeadd("2026-01-01T00:00:00Z", "72h")
      }
      resources {
        cpu    = local.conf.limits.cpu
        memory = local.conf.limits.memory
      }
    }
  }
}

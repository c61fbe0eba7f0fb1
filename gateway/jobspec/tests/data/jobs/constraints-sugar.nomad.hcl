job "picky" {
  constraint {
    attribute = "${attr.kernel.version}"
    version   = ">= 5.10, < 7"
  }
  constraint {
    attribute = "${attr.consul.version}"
    semver    = ">= 1.15.0-beta1"
  }
  constraint {
    attribute = "${attr.unique.hostname}"
    regexp    = "^web-[0-9]+$"
  }
  constraint {
    attribute    = "${meta.cached_binaries}"
    set_contains = "redis,cypress,nginx"
  }
  constraint {
    attribute = "${meta.rack}"
    operator  = "set_contains_any"
    value     = "r1,r2"
  }
  constraint {
    attribute = "${attr.cpu.numcores}"
    operator  = ">="
    value     = "4"
  }
  constraint {
    attribute = "${meta.ssd}"
    operator  = "is_set"
  }
  constraint {
    distinct_hosts = true
  }
  constraint {
    distinct_property = "${meta.rack}"
    value             = "2"
  }

  affinity {
    attribute = "${node.class}"
    operator  = "!="
    value     = "spot"
    weight    = -30
  }
  affinity {
    attribute        = "${meta.tags}"
    set_contains_any = "a,b"
  }

  spread {
    attribute = "${meta.rack}"
    weight    = 100
  }

  group "g" {
    constraint {
      operator = "distinct_hosts"
      value    = "false"
    }
    task "t" {
      driver = "exec"
      constraint {
        attribute = "${attr.cpu.arch}"
        operator  = "!="
        value     = "arm64"
      }
      config {
        command = "/bin/true"
      }
    }
  }
}

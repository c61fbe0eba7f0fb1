job "ports" {
  group "host" {
    network {
      mode = "host"
      port "a" {}
      port "b" {
        static = 8000
      }
      port "c.d" {
        static           = 8000
        host_network     = "public"
        ignore_collision = true
      }
      port "e-f_g" {
        to = -1
      }
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
        args    = ["${NOMAD_PORT_a}", "${NOMAD_ADDR_b}", "${NOMAD_HOST_PORT_e_f_g}"]
      }
    }
  }
  group "none" {
    network {
      mode = "none"
    }
    task "t" {
      driver = "docker"
      config {
        image = "busybox"
      }
    }
  }
}

job "mail" {
  type = "batch"
  parameterized {
    meta_optional = ["to"]
  }
  group "mail" {
    task "send" {
      driver = "raw_exec"
      config { command = "/usr/sbin/sendmail" }
      env {
        TO = "${NOMAD_META_to}"
      }
    }
  }
}

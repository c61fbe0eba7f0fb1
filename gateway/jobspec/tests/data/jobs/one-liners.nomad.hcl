job "terse" { group "g" { task "t" {
  driver = "raw_exec"
  config { command = "/bin/true" }
} } }

# One on every eligible node, after a first task has prepared what it needs.
job "watch" {
  type     = "system"
  priority = 70

  group "watch" {
    task "prepare" {
      driver = "raw_exec"

      lifecycle {
        hook = "prestart"
      }

      config {
        command = "/bin/sh"
        args    = ["-c", "date > \"$NOMAD_ALLOC_DIR/started\""]
      }

      resources {
        cpu    = 50
        memory = 16
      }
    }

    task "report" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", <<-EOT
          # Waiting for a sleep, unlike sleeping, ends at once when told to.
          trap 'exit 0' INT TERM
          while true; do
            echo "up since $(cat "$NOMAD_ALLOC_DIR/started")"
            sleep 30 &
            wait
          done
        EOT
        ]
      }

      meta {
        rack = "${meta.rack}"
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}

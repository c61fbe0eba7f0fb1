job "backup" {
  type = "batch"

  periodic {
    crons            = ["0 3 * * *", "30 15 * * SUN"]
    prohibit_overlap = true
    time_zone        = "Europe/Berlin"
  }

  group "backup" {
    restart {
      attempts = 3
      delay    = "1m"
      interval = "1h"
      mode     = "fail"
    }

    reschedule {
      attempts  = 5
      interval  = "12h"
      delay     = "30s"
      unlimited = false
    }

    task "dump" {
      driver = "exec"

      config {
        command = "/bin/bash"
        args    = ["-c", "pg_dump -h db.internal app | gzip > ${NOMAD_ALLOC_DIR}/dump-$(date +%F).sql.gz"]
      }

      kill_timeout = "20s"

      logs {
        max_files     = 3
        max_file_size = 5
      }
    }
  }
}

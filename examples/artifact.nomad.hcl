# A task whose program comes from an archive, which the node fetches, checks and unpacks before the task starts.
#
#   tar -czf hello.tgz hello.sh && sha256sum hello.tgz && python3 -m http.server 8000
#   sojourn job run -var source=http://localhost:8000/hello.tgz -var checksum=sha256:… artifact.nomad.hcl
variable "source" {
  type        = string
  default     = "http://localhost:8000/hello.tgz"
  description = "the address of an archive with hello.sh in it"
}

variable "checksum" {
  type        = string
  default     = "file:http://localhost:8000/hello.tgz.sha256"
  description = "its digest, or the address of a list of digests"
}

job "artifact" {
  type = "batch"

  group "main" {
    task "hello" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["${NOMAD_TASK_DIR}/app/hello.sh"]
      }

      artifact {
        source      = var.source
        destination = "local/app"

        options {
          checksum = var.checksum
        }
      }

      # A download that fails is tried again under the restart policy.
      restart {
        attempts = 3
        delay    = "5s"
        interval = "10m"
        mode     = "fail"
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}

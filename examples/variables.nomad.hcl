# One file for several places: run it with -var-file=variables.vars, or give single values with -var count=3.
variable "name" {
  type        = string
  description = "Who is greeted."
}

variable "count" {
  type    = number
  default = 1

  validation {
    condition     = var.count >= 1 && var.count <= 5
    error_message = "The count is a number from 1 to 5."
  }
}

variable "labels" {
  type    = map(string)
  default = {}
}

locals {
  greeting = "hello, ${upper(var.name)}"
  lines    = [for key, value in var.labels : "${key} is ${value}"]
}

job "greet" {
  type = "batch"
  meta = merge(var.labels, { greeted = var.name })

  group "greet" {
    count = var.count

    task "greet" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "echo \"${local.greeting} from $NOMAD_ALLOC_INDEX\"; echo \"${join(", ", local.lines)}\""]
      }

      resources {
        cpu    = 50
        memory = length(var.labels) > 0 ? 32 : 16
      }
    }
  }
}

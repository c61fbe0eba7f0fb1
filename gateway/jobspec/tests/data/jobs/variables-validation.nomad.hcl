variable "environment" {
  type        = string
  default     = "staging"
  description = "Where this runs."

  validation {
    condition     = contains(["staging", "production"], var.environment)
    error_message = "The environment is staging or production."
  }
}

variable "replicas" {
  type    = number
  default = 2
  validation {
    condition     = var.replicas > 0 && var.replicas <= 10
    error_message = "Between 1 and 10 replicas."
  }
}

variable "ports" {
  type    = tuple([number, string])
  default = [8080, "tcp"]
}

variable "features" {
  type    = set(string)
  default = ["b", "a", "b"]
}

variable "limits" {
  type = object({
    cpu    = number
    memory = number
  })
  default = {
    cpu    = 250
    memory = "512"
  }
}

variables {
  release = "1.4.0"
  debug   = false
}

locals {
  name    = "${var.environment}-web"
  image   = format("%s/%s:%s", local.registry, "web", var.release)
  registry = var.environment == "production" ? "registry.example.com" : "staging.example.com"
  flags   = [for f in var.features : upper(f) if f != ""]
  by_size = { for s in ["s", "m", "l", "m"] : s => s... }
}

job "web" {
  name = local.name

  meta {
    flags   = join(",", local.flags)
    medium  = length(local.by_size["m"])
    release = var.release
    port    = var.ports[0]
  }

  group "web" {
    count = var.replicas

    task "web" {
      driver = "docker"

      config {
        image = local.image
        args  = var.debug ? ["--debug"] : []
      }

      resources {
        cpu    = var.limits.cpu
        memory = var.limits.memory
      }
    }
  }
}

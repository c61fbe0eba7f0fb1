job "encode" {
  datacenters = ["dc1"]
  type        = "batch"

  meta {
    owner = "media"
  }

  parameterized {
    payload       = "required"
    meta_required = ["input", "profile"]
    meta_optional = ["notify"]
  }

  group "encode" {
    task "ffmpeg" {
      driver = "exec"

      config {
        command = "ffmpeg-wrapper"
        args    = ["-profile", "${NOMAD_META_PROFILE}", "-in", "${NOMAD_META_INPUT}"]
      }

      dispatch_payload {
        file = "config.json"
      }

      resources {
        cpu    = 1000
        memory = 256
      }
    }
  }
}

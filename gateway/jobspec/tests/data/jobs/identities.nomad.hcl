job "who" {
  group "g" {
    consul {
      namespace = "team"
      cluster   = "default"
    }
    task "t" {
      driver = "exec"
      consul {
        cluster   = "dc2"
        partition = "web"
      }
      identity {
        env  = true
        file = true
      }
      identity {
        name          = "example"
        aud           = ["oidc.example.com", "other"]
        ttl           = "2h"
        change_mode   = "signal"
        change_signal = "SIGHUP"
        file          = true
        filepath      = "local/example.jwt"
        extra_claims  = ["node_class"]
      }
      config {
        command = "/bin/who"
      }
    }
  }
}

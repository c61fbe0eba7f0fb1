job "plugin-ebs-nodes" {
  type = "system"

  group "nodes" {
    task "plugin" {
      driver = "docker"

      config {
        image      = "registry.example.com/ebs-csi-driver:v1.29"
        args       = ["node", "--endpoint=unix://csi/csi.sock", "--logtostderr"]
        privileged = true
      }

      csi_plugin {
        id             = "aws-ebs0"
        type           = "node"
        mount_dir      = "/csi"
        health_timeout = "1m"
      }

      resources {
        cpu    = 500
        memory = 256
      }
    }
  }
}

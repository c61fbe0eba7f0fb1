# A storage plugin: one task on every node that is to mount its volumes. This one keeps volumes on the node's own disk;
# others take the same place. "sojourn plugin status hostpath" shows when it is healthy.
job "csi-hostpath" {
  type = "system"

  group "plugin" {
    task "plugin" {
      driver = "docker"

      config {
        image      = "registry.k8s.io/sig-storage/hostpathplugin:v1.13.0"
        privileged = true
        args = [
          "--drivername=csi-hostpath",
          "--v=5",
          "--endpoint=${CSI_ENDPOINT}",
          "--nodeid=${node.unique.name}",
        ]
      }

      csi_plugin {
        id        = "hostpath"
        type      = "monolith" # or "controller" and "node", as two jobs
        mount_dir = "/csi"
      }

      resources {
        cpu    = 100
        memory = 128
      }
    }
  }
}

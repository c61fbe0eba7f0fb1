job "texts" {
  group "g" {
    task "t" {
      driver = "raw_exec"

      config {
        command = "/bin/bash"
        args = ["-c", <<EOF
set -euo pipefail
for i in $(seq 1 3); do
  echo "$${i} of $i, $${HOME:-none} on ${node.unique.name}"
done
EOF
        ]
      }

      template {
        destination = "local/indented.txt"
        data        = <<-EOT
            first
              second
            %{ if true ~}
            kept
            %{ endif ~}
            %{ for n in [1, 2] ~}
            line ${n}
            %{ endfor ~}
            {{ key "a/b" }} %%{literal}
        EOT
      }

      template {
        destination = "local/empty.txt"
        data        = <<EOT

EOT
      }
    }
  }
}

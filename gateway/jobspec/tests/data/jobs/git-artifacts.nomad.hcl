job "fetch" {
  type = "batch"
  group "fetch" {
    task "fetch" {
      driver = "exec"
      artifact {
        source      = "git::git@github.com:example/repo.git"
        destination = "local/repo"
        options {
          sshkey = "${base64encode("key")}"
          ref    = "v1.0"
          depth  = 1
        }
      }
      artifact {
        source   = "https://example.com/file.txt?checksum=md5:abc"
        mode     = "file"
        insecure = true
        chown    = true
      }
      artifact {
        source      = "hg::https://example.com/repo"
        mode        = "dir"
        destination = "local/hg"
      }
      config {
        command = "ls"
      }
    }
  }
}

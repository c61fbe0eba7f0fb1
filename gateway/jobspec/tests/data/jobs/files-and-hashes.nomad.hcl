job "from-files" {
  type = "batch"
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
      dynamic "template" {
        for_each = fileset("conf", "**/*.hcl")
        content {
          destination = "local/${template.value}"
          data        = "from ${basename(template.value)}, ${length(template.value)} letters"
        }
      }
      meta {
        greeting = trimspace(file("greeting.txt"))
        id       = uuidv5("dns", "example.com")
      }
    }
  }
}

job "train" {
  datacenters = ["gpu"]
  type        = "batch"

  group "train" {
    task "train" {
      driver = "docker"

      config {
        image    = "nvcr.example.com/cuda:12.4-base"
        command  = "python"
        args     = ["train.py", "--epochs", "90"]
        shm_size = 1073741824
        ulimit {
          memlock = "-1"
          stack   = "67108864"
        }
      }

      resources {
        cpu        = 4000
        memory     = 16384
        memory_max = 32768

        device "nvidia/gpu" {
          count = 2

          constraint {
            attribute = "${device.attr.memory}"
            operator  = ">="
            value     = "8 GiB"
          }

          affinity {
            attribute = "${device.model}"
            regexp    = "^A100"
            weight    = 75
          }
        }

        numa {
          affinity = "prefer"
          devices  = ["nvidia/gpu"]
        }
      }
    }
  }
}

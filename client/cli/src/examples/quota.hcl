name        = "default-quota"
description = "Limit the shared default namespace"

# A limit for each region that the quota counts in.
limit {
  region = "global"

  region_limit {
    cpu        = 2500
    memory     = 1000
    memory_max = 1000
  }

  variables_limit = 1000
}

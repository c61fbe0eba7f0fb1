# A variable, for `sojourn var put @spec.nv.hcl`.

# Where it stands. Left out, it is the namespace of the command.
namespace = "default"

# Letters, digits and - _ ~ / , at most 128. Tasks read nomad/jobs/JOB without a token.
path = "path/to/variable"

# After `var get -out=hcl` this is the index it was read at: `var put` writes only if nobody changed it since.
# modify_index = 0

# What it holds: 64 KiB of keys and values together.
items {
  key1 = "value 1"
  key2 = "value 2"
}

# A node pool: nodes join it by name, and jobs choose it with `node_pool`.
node_pool "example" {
  description = "An example of a node pool"

  # Whatever is worth knowing about it.
  meta {
    owner = "example"
  }
}

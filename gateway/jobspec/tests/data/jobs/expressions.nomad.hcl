locals {
  big     = 9007199254740993
  exp     = 1e3
  neg     = -(2 + 3) * 2
  half    = 7 / 2
  yes     = !false && (1 < 2 || false)
  list    = [for i, x in ["a", "b", "c"] : "${i}=${x}" if x != "b"]
  object  = { for k, v in { a = 1, b = 2 } : upper(k) => v * 10 }
  nested  = { list = [{ name = "x", tags = ["p", "q"] }, { name = "y", tags = [] }] }
  names   = local.nested.list[*].name
  tags    = flatten(local.nested.list.*.tags)
  picked  = lookup(local.object, "A", 0)
  ünïcode = "grüße"
  quoted  = "tab\there \"and\" \\ \u00e9"
  splat   = "single"[*]
  tern    = local.yes ? "on" : "off"
  idx     = local.list[length(local.list) - 1]
}

job "expressions" {
  type = "batch"
  meta = {
    big     = local.big
    exp     = local.exp
    neg     = local.neg
    half    = local.half
    list    = join(" ", local.list)
    object  = jsonencode(local.object)
    names   = join(",", local.names)
    tags    = join(",", local.tags)
    picked  = local.picked
    unicode = local.ünïcode
    quoted  = local.quoted
    splat   = jsonencode(local.splat)
    tern    = local.tern
    idx     = local.idx
    unset   = null
    "odd.key" = "kept"
  }

  /* A comment
     over lines. */
  group "g" {
    // one kind
    # another kind
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
        float   = 1.5
        int     = 3
        whole   = 2.0
        list    = [1, "two", true, null]
        object  = { a = { b = ["c"] } }
      }
    }
  }
}

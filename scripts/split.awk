# Moves the nested schemas that tfplugindocs writes into docs/index.md, and into each of the
# four pages that read a state, to the page of each kind, where each is once. It prints the
# rest of the page, and of what all four pages have, only the first describes more than names.
# Run in docs/; "write" is set for the first of pages with the same blocks.
#
#   awk -f ../scripts/split.awk [-v write=1] PAGE >PAGE.new

# page is the one of a nested block such as credentials--s3 or s3, "" for that of the index.
function page(id, part, kind, name) {
  split(id, part, "--")
  if (part[1] == "method") name = "guides/methods.md"
  else if (part[1] == "credentials" || part[1] == "key_provider") {
    kind = part[2]
    gsub("_", "-", kind)
    name = (part[1] == "credentials" ? "guides/source-" : "guides/key-provider-") kind ".md"
    if (!exists(name)) name = "guides/key-providers.md"
  } else {
    name = part[1] == "object" ? "guides/kubeform-and-crossplane.md" : "guides/source-" part[1] ".md"
    if (!exists(name)) name = "data-sources/remote_state.md"
  }
  return FILENAME == "index.md" && (part[2] == "" || part[1] == "default") ? "" : name
}

function exists(name, line, there) {
  if (!(name in known)) {
    there = (getline line <name)
    close(name)
    known[name] = there >= 0
  }
  return known[name]
}

# links has a line say on which page a nested block is.
function links(line, out, id, to) {
  while (match(line, /\[below for nested schema\]\(#nestedblock--[a-z0-9_-]+\)/)) {
    id = substr(line, RSTART, RLENGTH)
    sub(/.*#nestedblock--/, "", id)
    sub(/\)$/, "", id)
    to = page(id)
    if (to == "" || to == FILENAME || to == current) to = "[below](#nestedblock--" id ")"
    else to = "[its arguments](" (FILENAME == "index.md" ? "" : "../") to "#nestedblock--" id ")"
    out = out substr(line, 1, RSTART - 1) to
    line = substr(line, RSTART + RLENGTH)
  }
  return out line
}

# same says whether the first page describes an argument with the same words.
function same(line, there) {
  if (write) return 0
  if (!loaded) {
    while ((getline there <first) > 0) described[words(there)] = 1
    loaded = 1
  }
  return words(line) in described
}

function words(line) {
  sub(/ \(see .*/, "", line)
  return line
}

BEGIN { first = "data-sources/remote_state.md" }

/^<a id="nested/ {
  id = $0
  sub(/^<a id="nested[a-z]*--/, "", id)
  sub(/".*/, "", id)
  current = /^<a id="nestedblock--/ ? page(id) : FILENAME == "index.md" ? "" : first
  if (current == FILENAME) current = ""
  blank = "\n"
}

current == "" && /^- `/ && same($0) { names = names ", " $2; next }

current == "" && $0 == "" && names != "" {
  print "- " substr(names, 3) ": as in [`statecrypt_remote_state`](../" first "#schema)"
  names = ""
}

current == "" { print links($0); next }

# A heading says what the arguments are of; blank lines are one, and none at the end.
$0 == "" { blank = "\n"; next }

write {
  if (sub(/^### Nested Schema for /, "")) {
    depth = split(id, part, "--") - (part[1] ~ /^(credentials|key_provider|method)$/)
    $0 = (depth > 1 ? "### " : "## ") "Arguments of " $0
  }
  printf "%s%s\n", blank, links($0) >>current
  blank = ""
}

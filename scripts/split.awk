# Moves the nested schemas of credentials, key providers and methods from docs/index.md,
# which tfplugindocs writes as one, to the page of each kind. Run in docs/.
#
#   awk -f ../scripts/split.awk index.md >index.new

# page is the one of a nested block such as credentials--s3, "" for one of the index.
function page(id, part, kind, name) {
  if (split(id, part, "--") < 2) return ""
  kind = part[2]
  gsub("_", "-", kind)
  if (part[1] == "method") return "guides/methods.md"
  if (part[1] == "credentials") name = kind == "kubernetes" ? "guides/kubeform-and-crossplane.md" : "guides/source-" kind ".md"
  else if (part[1] == "key_provider") name = "guides/key-provider-" kind ".md"
  else return ""
  return exists(name) ? name : "guides/key-providers.md"
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
    out = out substr(line, 1, RSTART - 1) (to == "" || to == current ? "[below](#nestedblock--" id ")" : "[its arguments](" to "#nestedblock--" id ")")
    line = substr(line, RSTART + RLENGTH)
  }
  return out line
}

/^<a id="nestedblock--/ {
  id = $0
  sub(/^<a id="nestedblock--/, "", id)
  sub(/".*/, "", id)
  current = page(id)
  if (current != "") printf "\n" >>current
}

current == "" { print links($0); next }

# A heading says what the arguments are of; a blank line is not repeated.
{
  if (sub(/^### Nested Schema for /, "")) $0 = (split(id, parts, "--") > 2 ? "### " : "## ") "Arguments of " $0
  if ($0 == "" && last[current] == "") next
  last[current] = $0
  print links($0) >>current
}

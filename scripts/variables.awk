# Prints a table of the variables that the pages of docs/ name behind an argument, unsorted.
#
#   awk -f ../scripts/variables.awk data-sources/remote_state.md guides/*.md | sort

FNR == 1 { id = "" }

/^<a id="nestedblock--/ {
  id = $0
  sub(/^<a id="nestedblock--/, "", id)
  sub(/".*/, "", id)
}

/^- `[a-z0-9_]+` \(.*`[A-Za-z0-9_]+`/ {
  name = $2
  gsub("`", "", name)
  names = ""
  text = $0
  if (match(text, / Variables?: /)) {
    names = substr(text, RSTART + RLENGTH)
    text = substr(text, 1, RSTART)
    sub(/ \(see .*/, "", names) # of a block
    gsub(/[`.,]|else /, "", names)
  }
  gsub(/[^.]*(is not read|in place of|It finds)[^.]*/, "", text) # which has no variable of this argument
  sub(/ for a token from `.*/, "", text)
  while (match(text, /`[A-Z][A-Z0-9]*(_[A-Z_][A-Z0-9_]*(<host>)?|PASSWORD)`/)) { # in a sentence
    names = names " " substr(text, RSTART + 1, RLENGTH - 2)
    text = substr(text, RSTART + RLENGTH)
  }
  path = id
  gsub("--", ".", path)
  page = FILENAME ~ /^guides/ ? substr(FILENAME, 8) : "../" FILENAME
  link = "[`" (path == "" ? "" : path ".") name "`](" page (id == "" ? "#schema" : "#nestedblock--" id) ")"
  for (i = split(names, each, " "); i > 0; i--)
    if (!seen[each[i], link]++) links[each[i]] = links[each[i]] ", " link
}

END { for (name in links) print "| `" name "` | " substr(links[name], 3) " |" }

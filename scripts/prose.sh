#!/usr/bin/env bash
# Checks that prose keeps to 120 columns: comments of Go, and Markdown except for tables, code and the targets of
# links. (Code has 140; see lll in .golangci.yml.) It also finds some turns of phrase that readers have stumbled over.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C # bytes; awk then takes out those that continue a character

wide='
function check(text) {
  gsub(/[\200-\277]/, "", text)
  if (length(text) > 120) { printf "%s:%d: %d columns\n", FILENAME, FNR, length(text); found = 1 }
}
FNR == 1 { code = 0 }
END { exit found }'

status=0
# Directives cannot be broken, nor can words.
git ls-files -z '*.go' | xargs -0 awk "$wide"'
  /^[ \t]*\/\/[^ \t]/ || /^[ \t]*\/\/[ \t]*[^ \t]+$/ { next }
  /^[ \t]*\/\// { check($0) }' || status=1
written() { # lists the pages that are not generated
  git ls-files -z '*.md' '*.md.tmpl' ':!docs'
  git ls-files -z docs/maintaining.md docs/attacks.md
}
written | xargs -0 awk "$wide"'
  /^[ \t]*(```|~~~)/ { code = !code; next }
  code || /^[ \t]*\|/ || /^[ \t]*[{][{]/ { next }
  { text = $0; gsub(/\]\([^)]*\)/, "]()", text); gsub(/<?https?:[^ )>]*>?/, "", text); check(text) }' || status=1
if [ $status -ne 0 ]; then
  echo 'prose is wider than 120 columns' >&2
fi

# The plain words for these: still; found; unused, expired; the least recently used; identifiers that are not secrets;
# if there is, if a setting has; lowercase letters; in plaintext; with which identity; in place, where it is.
riddles='all the same|to be had|of no use|no use any more|for the longest\.|prove nothing|anyone here|is so is none|'
riddles+='nothing says a place|what there is to say|as it stands (in|there)|stands in the (code|configuration) as well|'
riddles+='small letters|in clear\b|as whom|(where|what) [a-z ]*\blies?\b'
if { git ls-files -z '*.go' && written; } | xargs -0 grep -nE "$riddles"; then
  echo 'say it in plain words: see scripts/prose.sh' >&2
  status=1
fi
exit $status

#!/usr/bin/env bash
# Prose keeps to 120 columns: comments of Go, and Markdown but for its tables,
# its code and the targets of links. (Code has 140; see lll in .golangci.yml.)
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
# Directives cannot be broken, nor can a word.
git ls-files -z '*.go' | xargs -0 awk "$wide"'
  /^[ \t]*\/\/[^ \t]/ || /^[ \t]*\/\/[ \t]*[^ \t]+$/ { next }
  /^[ \t]*\/\// { check($0) }' || status=1
git ls-files -z '*.md' '*.md.tmpl' ':!docs' ':!BENCHMARKS.md' | xargs -0 awk "$wide"'
  /^[ \t]*(```|~~~)/ { code = !code; next }
  code || /^[ \t]*\|/ || /^[ \t]*[{][{]/ { next }
  { text = $0; gsub(/\]\([^)]*\)/, "]()", text); gsub(/<?https?:[^ )>]*>?/, "", text); check(text) }' || status=1
if [ $status -ne 0 ]; then
  echo 'prose is wider than 120 columns' >&2
fi
exit $status

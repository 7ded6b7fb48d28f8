#!/bin/sh
# Prints the packages that have tests, on one line, in the order in which they should start. The first ones take long
# and often wait (internal/wrap, its package module, and internal/source/git): if they ran last and alone, cores would
# be idle.
#
#   scripts/packages.sh [folder to leave out]
#   scripts/packages.sh -racy   the packages whose own code shares memory between goroutines
#   scripts/packages.sh -soak   the packages with loops that "make soak" runs in full
set -eu
cd "$(dirname "$0")/.."
folders() { sed 's|/[^/]*$||' | sort -u; } # the folders of paths that contain a slash
case ${1:-} in
-racy) chosen=$(git grep -lE '"sync(/atomic)?"|[[:space:]]go (func|[a-z][A-Za-z.]*\()' -- '*/*.go' ':!*_test.go' ':!tools' ':!examples' | folders) ;;
-soak) chosen=$(git grep -lE '(testkit\.(Rounds|Sample)|mixes\.Of|Costs|[gG]row(All)?)\(' -- '*/*_test.go' | folders) ;;
*) chosen='' ;;
esac
module=$(sed -n 's/^module //p' go.mod)
go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' work |
  awk '/\/internal\/(wrap|wrap\/module|source\/git)$/ { print; next } { rest = rest $0 "\n" } END { printf "%s", rest }' | while read -r package; do
  folder=${package#"$module"/}
  if [ -n "$chosen" ]; then
    printf '%s\n' "$chosen" | grep -qx "$folder" || continue
  elif [ "$folder" = "${1:-}" ]; then
    continue
  fi
  printf '%s ' "$package"
done

#!/bin/sh
# Prints the packages that have tests, on one line, in the order in which they are
# to start: internal/wrap, its room module and internal/source/git first, since they take long and
# often wait, and would leave a core idle if they ran last and alone.
#
#   scripts/packages.sh [folder to leave out]
#   scripts/packages.sh -racy   those whose own code shares memory between goroutines
#   scripts/packages.sh -soak   those with loops that "make soak" runs whole
set -eu
cd "$(dirname "$0")/.."
folders() { sed 's|/[^/]*$||' | sort -u; } # of paths that contain a slash
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

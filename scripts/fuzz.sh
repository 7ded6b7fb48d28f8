#!/bin/sh
# Runs every fuzz test of the repository for $FUZZTIME. An input that fails is
# written to the testdata/fuzz of its package; commit it with the fix.
set -eu
cd "$(dirname "$0")/.."
status=0
list=$(mktemp)
trap 'rm -f "$list"' EXIT
grep -rlE '^func Fuzz' --include='*_test.go' builtin encryption internal | xargs -n 1 dirname | sort -u >"$list"
while read -r dir; do
  for name in $(grep -ohE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | cut -d' ' -f2 | sort -u); do
    echo "==> $dir $name"
    # Without the limit, Go spends most of the time on making large seeds smaller.
    go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-30s}" -fuzzminimizetime 10x "./$dir" || status=1
  done
done <"$list"
exit $status

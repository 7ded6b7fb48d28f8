#!/bin/sh
# Runs every fuzz test of the repository for $FUZZTIME each. Go writes an input that fails to testdata/fuzz in the
# package; commit it with the fix.
set -eu
cd "$(dirname "$0")/.."
status=0
list=$(mktemp)
trap 'rm -f "$list"' EXIT
grep -rlE '^func Fuzz' --include='*_test.go' builtin encryption internal | xargs -n 1 dirname | sort -u >"$list"
while read -r dir; do
  for name in $(grep -ohE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | cut -d' ' -f2 | sort -u); do
    echo "==> $dir $name"
    # Without this limit, Go spends most of the time on minimizing large seeds.
    go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-30s}" -fuzzminimizetime 10x "./$dir" || status=1
  done
done <"$list"
exit $status

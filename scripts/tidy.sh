#!/bin/sh
# Tidies the go.mod of each module of this repository. With -check, it shows the changes, and fails if there are any.
# "go mod tidy" ignores go.work, and would look for a release that does not exist yet, so it works on copies of go.mod
# that name the folders of the other modules.
#
#   scripts/tidy.sh [-check]
set -eu
cd "$(dirname "$0")/.."
root=$PWD
module=$(sed -n 's/^module //p' go.mod)
version=$(sed -n "s#^	$module/encryption \(v[^ ]*\).*#\1#p" go.mod)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

tidy() { # tidy folder module...: the other modules that it needs
  folder=$1
  shift
  mkdir -p "$work/$folder"
  cp "$folder/go.mod" "$folder/go.sum" "$work/$folder"
  for other; do
    go mod edit -replace="$module/$other@$version=$root/$other" "$work/$folder/go.mod"
  done
  (cd "$folder" && GOWORK=off GOFLAGS=-mod=mod go mod tidy -modfile="$work/$folder/go.mod")
  for other; do
    go mod edit -dropreplace="$module/$other@$version" "$work/$folder/go.mod"
  done
}

for folder in internal/shared encryption . tools/bench; do
  case $folder in
  internal/shared) tidy $folder ;;
  encryption) tidy $folder internal/shared ;;
  .) tidy $folder encryption internal/shared ;;
  *) tidy $folder ;; # its go.mod names the folders itself
  esac
  for file in go.mod go.sum; do
    if [ "${1:-}" = -check ]; then
      diff -u "$folder/$file" "$work/$folder/$file" || status=1
    else
      cp "$work/$folder/$file" "$folder/$file"
    fi
  done
done
exit $status

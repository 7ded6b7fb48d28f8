#!/bin/sh
# Formats files. With -check, it lists files that are not formatted, and fails if there are any.
#
#   scripts/fmt.sh [-check] go|examples...
set -eu
cd "$(dirname "$0")/.."
for v in $(env | sed -n 's/^\(TF_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$v"; done

gofmt=$(go env GOROOT)/bin/gofmt
check=''
if [ "$1" = -check ]; then
  check=1
  shift
fi

bad=''
for what in "$@"; do
  case $what in
  go)
    files=$(git ls-files -- '*.go' | while read -r f; do if [ -f "$f" ]; then echo "$f"; fi; done)
    if [ -z "$files" ]; then continue; fi
    if [ -n "$check" ]; then
      # shellcheck disable=SC2086 # Go file names here have no spaces
      list=$("$gofmt" -s -l $files)
    else
      # shellcheck disable=SC2086
      list='' && "$gofmt" -s -w $files
    fi
    ;;
  examples)
    if [ ! -d examples ]; then continue; fi
    cli=$(scripts/cli.sh)
    if [ -n "$check" ]; then
      status=0
      list=$("$cli" fmt -check -recursive examples) || status=$?
      # 3 means "not formatted"; anything else is a file it cannot read.
      if [ "$status" -ne 0 ] && [ "$status" -ne 3 ]; then exit "$status"; fi
    else
      list='' && "$cli" fmt -recursive examples
    fi
    ;;
  *)
    echo "fmt.sh: go or examples, not $what" >&2
    exit 2
    ;;
  esac
  if [ -n "$list" ]; then
    bad="$bad$list
"
  fi
done

if [ -n "$bad" ]; then
  printf 'not formatted (run "make fmt"):\n%s' "$bad" >&2
  exit 1
fi

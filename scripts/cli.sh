#!/bin/sh
# Prints the path of a CLI for the demo and the docs: terraform from PATH if it supports ephemeral values (1.10 or
# later), or else the pinned OpenTofu, which is compiled if necessary.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
export CHECKPOINT_DISABLE=1
for v in $(env | sed -n 's/^\(TF_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$v"; done

if found=$(command -v terraform) && version=$("$found" version 2>/dev/null | sed -n '1s/^Terraform v//p'); then
  major=${version%%.*}
  rest=${version#*.}
  minor=${rest%%.*}
  case $major.$minor in
  '.' | *[!0-9.]*) ;; # not something that we can compare
  *)
    if [ "$major" -gt 1 ] || { [ "$major" -eq 1 ] && [ "$minor" -ge 10 ]; }; then
      echo "$found"
      exit
    fi
    ;;
  esac
fi

MAKEFLAGS='' make -s -C "$root" .tools/bin/tofu >&2
echo "$root/.tools/bin/tofu"

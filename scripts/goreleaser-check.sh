#!/bin/sh
# Checks .goreleaser.yml. goreleaser requires a git remote, which a clone may lack, so the check runs in a repository
# of its own.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
repo=$(mktemp -d)
trap 'rm -rf "$repo"' EXIT
cp "$root/.goreleaser.yml" "$repo"
cd "$repo"
git init --quiet
git remote add origin https://github.com/statecrypt/terraform-provider-statecrypt.git
"$root/.tools/bin/goreleaser" check

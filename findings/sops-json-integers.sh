#!/bin/sh
# sops 3.13.3: whether a large integer in JSON survives depends on the command. "sops encrypt" and "sops decrypt" keep
# 9007199254740993 (2^53 + 1), but "sops set" of the same number stores 9007199254740992. Integers above 2^63 are rounded
# by encrypt and decrypt, too.
#
# Guessed before: encrypt and decrypt give 9007199254740992, too, because all numbers go through a float64.
#
# Needs Go and network access to a Go module proxy.
set -eu

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export HOME="$dir" GOMODCACHE="${GOMODCACHE:-$(go env GOMODCACHE)}" GOCACHE="${GOCACHE:-$(go env GOCACHE)}"
unset XDG_CONFIG_HOME SOPS_AGE_KEY SOPS_AGE_KEY_FILE SOPS_AGE_KEY_CMD SOPS_AGE_RECIPIENTS 2> /dev/null || true
export GOBIN="$dir/bin" CGO_ENABLED=0 GOWORK=off
go install -trimpath -ldflags "-s -w" github.com/getsops/sops/v3/cmd/sops@v3.13.3
go install -trimpath -ldflags "-s -w" filippo.io/age/cmd/age-keygen@v1.3.2
bin/sops --version --disable-version-check
bin/age-keygen -o key 2> /dev/null
export SOPS_AGE_KEY_FILE="$dir/key"
recipient=$(bin/age-keygen -y key)
echo '{"a": 9007199254740993, "b": 12345678901234567890}' > plain.json
bin/sops encrypt --age "$recipient" plain.json > sealed.json
bin/sops set sealed.json '["c"]' 9007199254740993
bin/sops decrypt sealed.json | tee opened.json
seen=$(tr -d ' \t\n' < opened.json)
test "$seen" = '{"a":9007199254740993,"b":12345678901234567000,"c":9007199254740992}'

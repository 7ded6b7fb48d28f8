#!/bin/sh
# OpenTofu 1.12.6: "tofu state push" to the local backend does not store the serial of the pushed file. It stores that
# serial plus one if there is no state yet, plus two if the content differs from the current state, also with -force, and
# the serial itself if the content is the same.
#
# Guessed before: 11, 21, 30, 4. Seen: 11, 22, 30, 5.
#
# Needs Go and network access to a Go module proxy. TOFU may name a built OpenTofu 1.12.6.
set -eu

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
if [ -z "${TOFU:-}" ]; then
  cat > go.mod <<'MOD'
module finding

go 1.26.0

require github.com/opentofu/opentofu v1.12.6

replace github.com/hashicorp/hcl/v2 v2.20.1 => github.com/opentofu/hcl/v2 v2.20.2-0.20251021132045-587d123c2828
MOD
  TOFU=$dir/tofu
  CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=mod go build -trimpath -ldflags "-s -w -X github.com/opentofu/opentofu/version.dev=no" \
    -o "$TOFU" github.com/opentofu/opentofu/cmd/tofu
fi
for v in $(env | sed -n 's/^\(TF_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$v"; done
export CHECKPOINT_DISABLE=1 TF_CLI_CONFIG_FILE=/dev/null
"$TOFU" version | head -n 1
mkdir module
cd module
echo 'output "o" { value = "anything" }' > main.tf
"$TOFU" init > /dev/null

state() { # state SERIAL TEXT: prints a state with one output
  printf '{"version":4,"terraform_version":"1.12.6","serial":%d,"lineage":"3f1c1c50-2b1e-4b0e-9d6a-0d0c6f7d8a11","outputs":{"o":{"value":"%s","type":"string"}},"resources":[]}\n' "$1" "$2"
}
push() { # push SERIAL TEXT [-force]: pushes a state, and prints the serial that is stored
  state "$1" "$2" > "$dir/file"
  "$TOFU" state push ${3:-} "$dir/file" > /dev/null
  sed -n 's/^ *"serial": *\([0-9]*\).*/\1/p' terraform.tfstate
}
seen="$(push 10 one) $(push 20 two) $(push 30 two) $(push 3 three -force)"
echo "pushed: 10, then 20 with other content, then 30 with the same content, then 3 with other content and -force"
echo "stored: $seen"
test "$seen" = "11 22 30 5"

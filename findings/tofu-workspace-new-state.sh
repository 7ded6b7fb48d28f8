#!/bin/sh
# OpenTofu 1.12.6: "tofu workspace new -state=FILE NAME" ends with exit code 0 and says that the workspace was created, but
# the new workspace has no state. With an encryption block and a fallback to plaintext, the command even encrypts FILE
# itself in place.
#
# Guessed before: the new workspace has the resources of FILE.
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
cat > main.tf <<'TF'
resource "terraform_data" "a" {}
resource "terraform_data" "b" {}
TF
"$TOFU" init > /dev/null
"$TOFU" apply -auto-approve > /dev/null
cp terraform.tfstate "$dir/copy.tfstate"
resources() { "$TOFU" state list 2> /dev/null | grep -c terraform_data || true; }
echo "resources in the default workspace: $(resources)"
"$TOFU" workspace new -state="$dir/copy.tfstate" next
copied=$(resources)
echo "resources in the new workspace: $copied"

mkdir ../encrypted
cd ../encrypted
cat > main.tf <<'TF'
terraform {
  encryption {
    key_provider "pbkdf2" "p" { passphrase = "correct-horse-battery-staple" }
    method "aes_gcm" "m" { keys = key_provider.pbkdf2.p }
    method "unencrypted" "u" {}
    state {
      method = method.aes_gcm.m
      fallback { method = method.unencrypted.u }
    }
  }
}
TF
"$TOFU" init > /dev/null
"$TOFU" workspace new -state="$dir/copy.tfstate" next > /dev/null
encrypted=$(grep -c encrypted_data "$dir/copy.tfstate" || true)
echo "with encryption, the file of -state is encrypted afterwards: $encrypted"
test "$copied $encrypted" = "0 1"

#!/bin/sh
# OpenTofu 1.12.6: a plan, and an apply that changes nothing, start an external key provider three times for one state
# file: once without metadata, and twice with the metadata of the same file. With the same method in a plan block, every
# command starts it once more, also commands that never touch a plan, such as "tofu output" and "tofu workspace list".
#
# Guessed before: a plan and an apply that changes nothing start it twice, once without and once with metadata.
#
# Needs Go, python3, and network access to a Go module proxy. TOFU may name a built OpenTofu 1.12.6.
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
cat > provider.py <<'PY'
import base64, json, sys
print(json.dumps({"magic": "OpenTofu-External-Key-Provider", "version": 1}), flush=True)
given = json.load(sys.stdin)
with open(sys.argv[1], "a") as log:
    log.write("new\n" if given is None else "stored\n")
key = base64.b64encode(b"k" * 32).decode()
keys = {"encryption_key": key}
if given is not None:
    keys["decryption_key"] = key
print(json.dumps({"keys": keys, "meta": {"external_data": {"n": 1}}}))
PY

count() { # count COMMAND...: prints how often the program ran without and with metadata
  : > "$dir/log"
  "$TOFU" "$@" > /dev/null
  echo "$1: $(grep -c new "$dir/log") without, $(grep -c stored "$dir/log") with metadata"
}
module() { # module NAME TEXT: makes a module with an encrypted state; TEXT goes into the encryption block
  mkdir "$dir/$1"
  cd "$dir/$1"
  cat > main.tf <<TF
terraform {
  encryption {
    key_provider "external" "k" { command = ["python3", "$dir/provider.py", "$dir/log"] }
    method "aes_gcm" "m" { keys = key_provider.external.k }
    state { method = method.aes_gcm.m }
    $2
  }
}
output "o" { value = "x" }
TF
  "$TOFU" init > /dev/null
  "$TOFU" apply -auto-approve > /dev/null
}
module state ""
seen=$(count output; count workspace list; count plan; count apply -auto-approve)
module both "plan { method = method.aes_gcm.m }"
both=$(count output; count workspace list; count plan)
printf 'encryption of states:\n%s\nencryption of states and plans:\n%s\n' "$seen" "$both"
test "$seen" = "output: 1 without, 1 with metadata
workspace: 1 without, 0 with metadata
plan: 1 without, 2 with metadata
apply: 1 without, 2 with metadata"
test "$both" = "output: 2 without, 1 with metadata
workspace: 2 without, 0 with metadata
plan: 2 without, 2 with metadata"

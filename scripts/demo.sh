#!/bin/sh
# Runs examples/demo with the provider in this directory, without a network and without init, and leaves nothing
# behind. The passphrase is published, so it protects nothing. Then the CLI writes a state of its own through
# statecrypt wrap.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cli=$("$root/scripts/cli.sh")

for v in $(env | sed -n 's/^\(TF_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$v"; done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cp -R "$root/examples/demo/." "$work"
# The state of a user's own trial is removed.
rm -rf "$work/.terraform" "$work"/.terraform.lock.hcl

provider_dir=$root
if command -v cygpath >/dev/null; then provider_dir=$(cygpath -m "$root"); fi
cat >"$work/cli.tfrc" <<END
provider_installation {
  dev_overrides {
    "statecrypt/statecrypt" = "$provider_dir"
  }
  direct {
    exclude = ["*/*/*"]
  }
}
END
export CHECKPOINT_DISABLE=1 TF_IN_AUTOMATION=1 TF_INPUT=0
export TF_CLI_CONFIG_FILE="$work/cli.tfrc"
TF_VAR_state_passphrase=$(cat "$root/examples/demo/passphrase.txt")
export TF_VAR_state_passphrase

cd "$work"
"$cli" version | head -n 1
quiet() { # quiet COMMAND: shows the output only if the command fails
  "$@" >quiet.log 2>&1 || {
    cat quiet.log >&2
    exit 1
  }
}
quiet "$cli" apply -auto-approve -no-color
"$cli" output -no-color

echo
echo "The same module reads what statecrypt wrap has written to a file:"
rm network.tfstate
wrapped() { quiet "$root/statecrypt" wrap -config keys.hcl -- "$cli" -chdir=network "$@"; }
wrapped init
wrapped apply -auto-approve
"$root/statecrypt" inspect network.tfstate
quiet "$cli" apply -auto-approve -no-color
"$cli" output -no-color vpc_id

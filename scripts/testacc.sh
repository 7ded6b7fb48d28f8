#!/bin/sh
# Runs the acceptance tests once for each CLI given: a path, or a name to find on PATH. A name that is not on PATH is
# skipped, and the list at the end says so.
#
#   [TIMEOUT=20m] [TESTS='^TestAcc'] [SHORT=-short] scripts/testacc.sh terraform .tools/bin/terraform-1.5.7 .tools/bin/tofu
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
packages='./internal/provider ./internal/wrap'
if [ -z "${SHORT:-}" ]; then packages="$packages ./cmd/statecrypt"; fi

for v in $(env | sed -n 's/^\(TF_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$v"; done
export CHECKPOINT_DISABLE=1 TF_ACC=1

export CGO_ENABLED=0
make -s .tools/bin/testsum

if [ -z "${STATECRYPT_TOFU:-}" ] && [ -x "$root/.tools/bin/tofu" ]; then
  export STATECRYPT_TOFU="$root/.tools/bin/tofu"
fi

run() { # run CLI: tests the packages at the same time, because many wait for the CLI
  # shellcheck disable=SC2086 # packages have no spaces
  TF_ACC_TERRAFORM_PATH=$1 .tools/bin/testsum --packages "$(go list $packages | tr '\n' ' ')" -- -trimpath -vet=off -ldflags '-s -w' \
    -count 1 -run "${TESTS:-^TestAcc}" -parallel 4 ${SHORT:-} -timeout "${TIMEOUT:-20m}"
}

ran='' missing='' failed=''
for name in "$@"; do
  case $name in
  */*) cli=$(cd "$(dirname "$name")" && pwd)/$(basename "$name") ;;
  *) cli=$(command -v "$name") || cli='' ;;
  esac
  # On Windows, the tests need the file itself, under its Windows name.
  if [ ! -f "$cli" ] && [ -f "$cli.exe" ]; then cli=$cli.exe; fi
  if [ ! -x "$cli" ]; then
    case $name in
    .tools/bin/*) why="not compiled; make $name does that" ;;
    *) why='not found' ;;
    esac
    missing="$missing  not run  $name ($why)
"
    continue
  fi
  version=$("$cli" version | head -n 1)
  if command -v cygpath >/dev/null; then cli=$(cygpath -m "$cli"); fi

  # OpenTofu does not know plugin-testing's default address, which has no namespace. With our address, the tests can
  # run configurations as users write them.
  host=registry.terraform.io
  case $version in OpenTofu*) host=registry.opentofu.org ;; esac
  export TF_ACC_PROVIDER_NAMESPACE=statecrypt TF_ACC_PROVIDER_HOST=$host

  echo "acceptance tests on $version"
  start=$(date +%s)
  if run "$cli"; then
    ran="$ran  passed   $version ($name), $(($(date +%s) - start)) s
"
  else
    failed="$failed  FAILED   $version ($name), $(($(date +%s) - start)) s
"
  fi
done

echo
echo "acceptance tests:"
printf '%s%s%s' "$ran" "$failed" "$missing"
if [ -n "$failed" ]; then exit 1; fi
if [ -z "$ran" ]; then
  echo "no CLI was found, so nothing was tested" >&2
  exit 1
fi

#!/bin/sh
# Runs the acceptance tests once for each CLI given: a path, or a name to find
# on PATH. A name that is not on PATH is left out, and the list at the end says so.
#
#   [TIMEOUT=20m] scripts/testacc.sh terraform .tools/bin/terraform-1.5.7 .tools/bin/tofu
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
packages='internal/provider internal/wrap'

for v in $(env | sed -n 's/^\(TF_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$v"; done
export CHECKPOINT_DISABLE=1 TF_ACC=1

if [ -z "${STATECRYPT_TOFU:-}" ] && [ -x "$root/.tools/bin/tofu" ]; then
  export STATECRYPT_TOFU="$root/.tools/bin/tofu"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
exe=.test$(go env GOEXE)
export CGO_ENABLED=0
make -s -C "$root" .tools/bin/testsum
echo "compiling the acceptance tests"
for package in $packages; do
  tests=$work/${package##*/}$exe
  (cd "$root" && go test -trimpath -vet=off -ldflags '-s -w' -c -o "$tests" "./$package")

  if ! (cd "$root/$package" && "$tests" -test.list '^TestAcc') | grep -q '^TestAcc'; then
    echo "there are no acceptance tests in $package" >&2
    exit 1
  fi
done

run() { # run CLI: the tests of all packages, also if some fail
  failures=0
  for package in $packages; do
    # shellcheck disable=SC2086 # TESTARGS is a list of flags
    (cd "$root/$package" && TF_ACC_TERRAFORM_PATH=$1 "$root/.tools/bin/testsum" --raw-command -- \
      go tool test2json -t -p "$package" "$work/${package##*/}$exe" -test.v=test2json \
      -test.run '^TestAcc' -test.parallel 4 -test.timeout "${TIMEOUT:-20m}" ${TESTARGS:-}) || failures=1
  done
  return "$failures"
}

ran='' missing='' failed=''
for name in "$@"; do
  case $name in
  */*) cli=$(cd "$(dirname "$name")" && pwd)/$(basename "$name") ;;
  *) cli=$(command -v "$name") || cli='' ;;
  esac
  # Windows: the tests want the file itself, under its Windows name.
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

  # plugin-testing's own default, an address without a namespace, is unknown to
  # OpenTofu; and with ours the tests can run configurations as users write them.
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

#!/bin/sh
# Changes the code that guards secrets in one place after the other, and prints the changes that no test of the same
# package notices with -short.
#
#   scripts/mutants.sh GREMLINS SUMMARY [PACKAGE...]
#
# gremlins changes only code that a coverage profile marks as covered, and the conditions of a switch are in no
# profile. So the program that replaces go for gremlins adds each file to the profile as a whole, and every change is
# tried. It also tells gremlins which changes do not compile, which go test reports as a failed test.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
gremlins=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
summary=$2
shift 2
[ $# -gt 0 ] || set -- internal/shared/recognize encryption/attr encryption/internal/entries encryption builtin/method/sops internal/wrap internal/wrap/cmdline internal/wrap/module internal/wrap/plan internal/wrap/proxy internal/wrap/states

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/code" "$work/reports"
cat >"$work/bin/go" <<'SHIM'
#!/bin/sh
profile='' previous=''
for arg; do
  [ "$previous" != -coverprofile ] || profile=$arg
  previous=$arg
done
if [ -z "$profile" ]; then
  [ "$1" != test ] || "$REAL_GO" build "$previous" || exit 2 # the last argument is the package
  exec "$REAL_GO" "$@"
fi
# Tests that fail in every copy would seem to notice every change.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -R . "$copy"
(cd "$copy" && "$REAL_GO" test -count 1 "./$PACKAGE") || exit 1
"$REAL_GO" test -count 1 -coverprofile "$profile" "./$PACKAGE"
cut -d: -f1 "$profile" | sort -u | sed -n 's/\.go$/.go:1.1,100000.1 1 1/p' >>"$profile"
SHIM
chmod +x "$work/bin/go"
REAL_GO=$(command -v go)
export REAL_GO
# -short for each test run, and the build flags of the provider.
export GOFLAGS="-short -trimpath -vet=off '-ldflags=-s -w'" CGO_ENABLED=0

# gremlins copies everything for each of its workers, so build results are left out.
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$work/code"

# gremlins copies one module to a place where no go.work leads to the others.
mkdir "$work/mod"
cp "$work/code/encryption/go.mod" "$work/code/encryption/go.sum" "$work/mod"
shared=$(sed -n 's#^	\([^ ]*/internal/shared\) .*#\1#p' "$work/mod/go.mod")
go mod edit -replace="$shared=$work/code/internal/shared" "$work/mod/go.mod"

for package; do
  echo "==> $package"
  case $package in
  encryption | encryption/*) module=encryption workspace=off flags="$GOFLAGS -modfile=$work/mod/go.mod" ;;
  internal/shared/*) module=internal/shared workspace=off flags=$GOFLAGS ;;
  *) module=. workspace=auto flags=$GOFLAGS ;;
  esac
  PACKAGE=${package#"$module"}
  PACKAGE=${PACKAGE#/}
  PACKAGE=${PACKAGE:-.}
  export PACKAGE
  (cd "$work/code/$module" && PATH="$work/bin:$PATH" GOWORK=$workspace GOFLAGS=$flags \
    "$gremlins" unleash "./$PACKAGE" --workers "$(getconf _NPROCESSORS_ONLN)" \
    --timeout-coefficient 15 --invert-logical --invert-loopctrl -E "^($PACKAGE/)?[^/]+/" -S l \
    -o "$work/reports/$(echo "$package" | tr / _).json" &&
    { go test -count 1 "./$PACKAGE" || { echo "the tests fail without a change by now, so they noticed nothing"; exit 1; }; })
done
"$summary" -root "$root" -accepted tools/mutants/accepted.tsv "$work"/reports/*.json

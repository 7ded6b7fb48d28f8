#!/bin/sh
# Prints everything that is missing before VERSION may be tagged: in the changelog, in the files that name versions,
# and in texts that say that there is no release. Without -texts, it then runs the upgrade test, and builds a release
# that is not published.
#
#   scripts/release-check.sh [-texts] VERSION
set -eu
texts=''
if [ "${1-}" = -texts ]; then texts=yes && shift; fi
version=${1:?a version is required, such as 0.1.0}
version=${version#v}
case $version in
*[!0-9.]* | '') echo "$version is no version, such as 0.1.0" >&2 && exit 2 ;;
esac
cd "$(dirname "$0")/.."
missing=0
missing() {
  echo "missing: $1" >&2
  missing=$((missing + 1))
}

grep -Eq "^## \\[$version\\] - [0-9]{4}-[0-9]{2}-[0-9]{2}\$" CHANGELOG.md || missing "CHANGELOG.md has no \"## [$version] - DATE\""
grep -q "^\\[$version\\]: .*/v$version\$" CHANGELOG.md || missing "CHANGELOG.md has no link of $version"
if sed -n '/^## \[Unreleased\]/,/^## \[[0-9]/p' CHANGELOG.md | grep -q '^- '; then
  missing "CHANGELOG.md has entries under Unreleased"
fi
for file in go.mod encryption/go.mod go.work tools/bench/go.mod; do
  if grep -E 'terraform-provider-statecrypt/(encryption|internal/shared) v' "$file" | grep -qv " v$version\\b"; then
    missing "$file has another version of our modules"
  fi
done
texts() { # prints the files that name another version, or say that there is no release
  awk -v plain="$version" -v version="$(printf %s "$version" | sed 's/\./[.]/g')" '
    function end() {
      if (tolower(text) ~ /there is no release|before the first release/) print name " says that there is no release"
      text = ""
    }
    FNR == 1 { end(); name = FILENAME }
    { text = text " " $0 }
    /terraform-provider-statecrypt\/(v[0-9]|actions\/[a-z-]+@v)/ && $0 !~ "[/@]v" version "([^0-9.]|$)" ||
      /VERSION=[0-9]|statecrypt\/statecrypt\/[0-9]/ && $0 !~ "[=/]" version "([^0-9.]|$)" {
      print name " loads or runs another version"
    }
    name ~ /gitlab[.]yml$/ && $1 == "version:" && $2 != plain { print name " loads or runs another version" }
    END { end() }' "$@"
}
# shellcheck disable=SC2046 # our names have no spaces
found=$(texts $(git ls-files README.md conformance/README.md templates examples) | sort -u)
if [ -n "$found" ]; then
  while read -r text; do missing "$text"; done <<TEXTS
$found
TEXTS
fi
for tag in "v$version" "encryption/v$version" "internal/shared/v$version"; do
  if git rev-parse --quiet --verify "refs/tags/$tag" >/dev/null; then missing "the tag $tag is there already"; fi
done
if [ -z "$texts" ] && [ -n "$(git status --porcelain)" ]; then missing "there are changes that are not committed"; fi
if [ "$missing" -gt 0 ]; then
  echo "$version is not ready to be tagged: $missing missing" >&2
  exit 1
fi
[ -z "$texts" ] || exit 0
CGO_ENABLED=0 go test -trimpath -vet=off -count 1 -run '^TestUpgrade' ./internal/testing/builds
make --no-print-directory release-smoke
echo "$version is ready to be tagged"

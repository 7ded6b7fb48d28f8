#!/usr/bin/env bash
# Builds a release for this machine like the release workflow, builds it again to compare the bytes, and installs it
# without a network. The commands are taken from the guide on that: all its blocks that are marked as sh run one after
# the other in a copy of examples/demo.
#
#   scripts/release-smoke.sh terraform .tools/bin/terraform-1.5.7 .tools/bin/tofu
#
# Each argument is a CLI: a path, or a name that is skipped if PATH does not have it.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
guide=$root/templates/guides/air-gapped.md.tmpl
for v in $(env | sed -n 's/^\(TF_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$v"; done

if ! command -v sha256sum >/dev/null || ! command -v gpg >/dev/null; then
  echo "the guide is for Linux, and takes sha256sum and gpg: nothing was tested" >&2
  exit 1
fi

clis=()
for name in "$@"; do
  case $name in
  */*) clis+=("$(cd "$(dirname "$name")" && pwd)/$(basename "$name")") ;;
  *) if found=$(command -v "$name"); then clis+=("$found"); else echo "not run: $name (not found)"; fi ;;
  esac
done
if [ ${#clis[@]} -eq 0 ]; then
  echo "no CLI was found, so nothing was tested" >&2
  exit 1
fi

work=$(mktemp -d)
finish() {
  GNUPGHOME=$work/gpg gpgconf --kill all >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

# This key signs only during this test.
export GNUPGHOME=$work/gpg
mkdir -m 700 "$GNUPGHOME"
gpg --quiet --batch --passphrase '' --quick-generate-key 'a test <test@example.com>' rsa2048 sign never 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
GPG_FINGERPRINT=$(gpg --batch --with-colons --list-secret-keys 2>/dev/null | awk -F: '$1 == "fpr" && !seen++ { print $10 }')
export GPG_FINGERPRINT

# goreleaser requires a clean repository with a tag and a remote, and would build for every platform. So it gets a
# copy of this repository with its own settings.
repo=$work/repo
mkdir "$repo"
(cd "$root" && git ls-files -z --cached --others --exclude-standard) |
  (cd "$root" && while IFS= read -r -d '' f; do [ ! -f "$f" ] || printf '%s\0' "$f"; done) |
  tar -C "$root" --null -T - -cf - | tar -C "$repo" -xf -
cd "$repo"
sed -i.orig "s/^    goos: .*/    goos: [$(go env GOOS)]/; s/^    goarch: .*/    goarch: [$(go env GOARCH)]/" .goreleaser.yml
rm .goreleaser.yml.orig
git init --quiet
git config user.name test
git config user.email test@example.com
git config commit.gpgsign false
git remote add origin https://github.com/statecrypt/terraform-provider-statecrypt.git
git add -A
git commit --quiet -m test
git tag v0.0.1
GOENV=off "$root/.tools/bin/goreleaser" release --clean --skip=announce,publish,sbom >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
cd dist

PLATFORM=$(go env GOOS)_$(go env GOARCH)
zips=(*.zip)
VERSION=${zips[0]#terraform-provider-statecrypt_}
VERSION=${VERSION%"_$PLATFORM.zip"}
DOWNLOADS=$PWD
export PLATFORM VERSION DOWNLOADS
if [ ${#zips[@]} -ne 1 ] || [ "${zips[0]}" != "terraform-provider-statecrypt_${VERSION}_${PLATFORM}.zip" ]; then
  printf 'want one archive for %s, got: %s\n' "$PLATFORM" "${zips[*]}" >&2
  exit 1
fi
# The registries require the manifest beside the archives, and its checksum.
for file in "${zips[0]}" "terraform-provider-statecrypt_${VERSION}_manifest.json"; do
  grep -q " $file\$" "terraform-provider-statecrypt_${VERSION}_SHA256SUMS" || { echo "$file has no checksum" >&2; exit 1; }
done
# The command has an archive of its own, with a signature and a checksum that the registries do not see, and a guide
# of its own.
sha256sum --check --strict --quiet "statecrypt_${VERSION}_${PLATFORM}.tar.gz.sha256"
if grep -q " statecrypt_" "terraform-provider-statecrypt_${VERSION}_SHA256SUMS"; then
  echo "the registries would look for the archive of the command" >&2
  exit 1
fi
awk '/^## / { release = $0 == "## From a release" } /^```sh$/ { block = release; next } /^```/ { block = 0 } block' \
  "$root/templates/guides/installing.md.tmpl" >"$work/installing.sh"
mkdir "$work/bin"
BIN=$work/bin PATH=$work/bin:$PATH sh -eu "$work/installing.sh" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
for want in 'Good signature' "^statecrypt $VERSION\$"; do
  grep -q "$want" "$work/log" || { cat "$work/log" >&2; echo "the guide on installing does not install the command: want $want" >&2; exit 1; }
done
echo "built $VERSION for $PLATFORM"

# Anyone who rebuilds the release must get the same bytes, whatever Go settings the shell and "go env -w" have, and
# must notice a single changed byte.
mkdir -p "$work/config/go"
printf 'GOFLAGS=-gcflags=-N\nGOAMD64=v3\nGOARM64=v8.1\n' >"$work/config/go/env"
XDG_CONFIG_HOME=$work/config GOFLAGS=-tags=other GOEXPERIMENT=nosuch \
  "$root/scripts/rebuild.sh" "$VERSION" "$DOWNLOADS" "$repo" >"$work/log" 2>&1 || { cat "$work/log" >&2; echo "a second build differs" >&2; exit 1; }
mkdir "$work/changed" "$work/changed/files"
tar -xzf "statecrypt_${VERSION}_${PLATFORM}.tar.gz" -C "$work/changed/files"
printf x >>"$work/changed/files/statecrypt"
tar -czf "$work/changed/statecrypt_${VERSION}_${PLATFORM}.tar.gz" -C "$work/changed/files" .
if "$root/scripts/rebuild.sh" "$VERSION" "$work/changed" "$repo" >"$work/log" 2>&1 || ! grep -q '^DIFFERS: .*: statecrypt$' "$work/log"; then
  cat "$work/log" >&2
  echo "rebuild.sh does not notice a program that was changed" >&2
  exit 1
fi
echo "built it again, with the same bytes"

awk '/^```sh$/ { block = 1; next } /^```/ { block = 0 } block' "$guide" >"$work/guide.sh"
for command in 'gpg --verify' 'sha256sum --check' 'terraform init$' 'terraform plan' 'terraform providers lock'; do
  grep -q "$command" "$work/guide.sh" || { echo "the guide no longer says: $command" >&2; exit 1; }
done

# The installation must not reach the network: it runs in a network namespace of its own if the system allows that,
# and always with proxies that do not exist.
export HTTP_PROXY=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9
export ALL_PROXY=http://127.0.0.1:9 NO_PROXY='' no_proxy=''
offline=(unshare --user --map-root-user --net)
"${offline[@]}" true 2>/dev/null || offline=(env)

export TF_IN_AUTOMATION=1 TF_INPUT=0 TF_CLI_ARGS=-no-color
TF_VAR_state_passphrase=$(cat "$root/examples/demo/passphrase.txt")
export TF_VAR_state_passphrase
for CLI in "${clis[@]}"; do
  export CLI
  version=$("$CLI" version)
  version=${version%%$'\n'*}
  here=$work/run
  rm -rf "$here"
  mkdir -p "$here/home" "$here/demo"
  cp -R "$root/examples/demo/." "$here/demo"
  rm -rf "$here/demo/.terraform" "$here/demo/.terraform.lock.hcl" # from a user's own trial
  case $version in
  'Terraform v1.'[5-9].*) sed -i.orig 's/ephemeral = true.*/sensitive = true/' "$here/demo/main.tf" ;; # before 1.10
  esac
  # The guide first changes to the folder of the downloads. Its commands for the folder of a configuration begin with
  # init.
  cat >"$here/run.sh" <<'END'
set -eu
terraform() { cd "$DEMO"; "$CLI" "$@"; }
END
  cat "$work/guide.sh" >>"$here/run.sh"
  if ! DEMO=$here/demo HOME=$here/home MIRROR=$here/mirror "${offline[@]}" sh "$here/run.sh" >"$here/log" 2>&1; then
    cat "$here/log" >&2
    echo "FAILED: $version" >&2
    exit 1
  fi
  for want in 'Good signature' "${zips[0]}: OK" 'has been successfully initialized' 'vpc_id *= "vpc-0a1b2c3d4e5f"'; do
    grep -q "$want" "$here/log" || { cat "$here/log" >&2; echo "FAILED: $version: want $want" >&2; exit 1; }
  done
  grep -q "version *= *\"$VERSION\"" "$here/demo/.terraform.lock.hcl" || { echo "FAILED: $version installed another version" >&2; exit 1; }
  echo "installed from a mirror, offline, as the guide says: $version"
done

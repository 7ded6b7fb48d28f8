#!/bin/sh
# Encrypts or decrypts the plan in the file PLAN, in its place:
#
#   plan.sh encrypt|decrypt
#
# RECIPIENTS is a file with recipients of age, one in each line; IDENTITY is a private key,
# or a file with one. CONFIG is a file with encryption settings, in place of both. If there
# is no statecrypt in PATH, VERSION of it is downloaded, and compared with SHA256 or, if that
# is empty, with the checksum of the release.
set -eu
umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM

fetch() {
  if command -v curl >/dev/null; then curl -fsSL "$1"; else wget -qO- "$1"; fi
}

install() {
  : "${VERSION:?the version of statecrypt to install is required}"
  platform=$(uname -s | tr '[:upper:]' '[:lower:]')_$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
  archive=statecrypt_${VERSION#v}_$platform.tar.gz
  from=${RELEASES:-https://github.com/statecrypt/terraform-provider-statecrypt/releases/download}/v${VERSION#v}
  fetch "$from/$archive" >"$work/archive"
  wanted=${SHA256:-$(fetch "$from/$archive.sha256" | cut -c 1-64)}
  sum=sha256sum
  command -v sha256sum >/dev/null || sum='shasum -a 256'
  if [ "$($sum <"$work/archive" | cut -c 1-64)" != "$wanted" ]; then
    echo "$from/$archive does not have the checksum $wanted" >&2
    exit 1
  fi
  tar -xzf "$work/archive" -C "$work" statecrypt
  PATH=$work:$PATH
}

settings() {
  unset TF_ENCRYPTION # which is for the state
  CONFIG=$work/plans.hcl
  if [ "$1" = encrypt ]; then
    : "${RECIPIENTS:?a file with recipients is required, or config}"
    sed -e 's/[[:space:]]*$//' -e '/^#/d' "$RECIPIENTS" >"$work/recipients"
    key="recipients = compact(split(\"\\n\", file(\"$work/recipients\")))"
  else
    : "${IDENTITY:?an identity is required, or config}"
    if [ -f "$IDENTITY" ]; then cat "$IDENTITY"; else printf '%s\n' "$IDENTITY"; fi >"$work/identity"
    key="identity_files = [\"$work/identity\"]"
  fi
  cat >"$CONFIG" <<SETTINGS
key_provider "age" "plans" {
  $key
}
method "aes_gcm" "plans" {
  keys = key_provider.age.plans
}
plan {
  method = method.aes_gcm.plans
}
SETTINGS
}

command -v statecrypt >/dev/null || install
[ -n "${CONFIG-}" ] || settings "$1"
statecrypt "$1" -config "$CONFIG" -plan -o "$PLAN" "$PLAN"

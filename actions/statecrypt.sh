#!/bin/sh
# Encrypts or decrypts the plan in the file PLAN, in its place, or puts statecrypt into the
# folder INTO, if it is not in PATH:
#
#   statecrypt.sh encrypt|decrypt|install
#
# RECIPIENTS is a file with recipients of age, one in each line; IDENTITY is a private key,
# or a file with one. CONFIG is a file with encryption settings, in place of both. If there
# is no statecrypt in PATH, VERSION of it is downloaded, and compared with SHA256 or, if that
# is empty, with the checksum of the release. No other variable of the job chooses what runs
# here, or with which key, but those of the machine: PATH, and what is loaded into the shell
# itself. Bash takes SHELLOPTS, PS4 and their like before the first line, so whoever starts this
# script leaves them out, as the actions do.
set -eu +x # a trace would show the key
# Functions that the job exports, in which bash finds names first, and libraries for programs.
unset -f cat command curl cut echo env mkdir mktemp mv printf rm sed sha256sum shasum statecrypt tar test tr umask uname wget
unset LD_AUDIT LD_LIBRARY_PATH LD_PRELOAD DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH
unset TF_ENCRYPTION # which is for the state
umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM

fail() {
  echo "$1" >&2
  exit 1
}

# clean runs a program with what any program needs in order to run, and the machine's proxies
# and authorities: TAR_OPTIONS, CURL_HOME or PERL5OPT would choose what else runs.
clean() {
  env -i PATH="$PATH" ${HOME+"HOME=$HOME"} ${TMPDIR+"TMPDIR=$TMPDIR"} \
    ${https_proxy+"https_proxy=$https_proxy"} ${HTTPS_PROXY+"HTTPS_PROXY=$HTTPS_PROXY"} \
    ${no_proxy+"no_proxy=$no_proxy"} ${NO_PROXY+"NO_PROXY=$NO_PROXY"} \
    ${SSL_CERT_FILE+"SSL_CERT_FILE=$SSL_CERT_FILE"} ${SSL_CERT_DIR+"SSL_CERT_DIR=$SSL_CERT_DIR"} "$@"
}

fetch() {
  if command -v curl >/dev/null; then clean curl -fsSL --proto =https "$1"; else clean wget -qO- "$1"; fi
}

install() {
  : "${VERSION:?the version of statecrypt to install is required}"
  platform=$(uname -s | tr '[:upper:]' '[:lower:]')_$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
  archive=statecrypt_${VERSION#v}_$platform.tar.gz
  from=https://github.com/statecrypt/terraform-provider-statecrypt/releases/download/v${VERSION#v}
  sum=sha256sum
  if ! command -v sha256sum >/dev/null; then
    command -v shasum >/dev/null || fail "sha256sum or shasum is required to compare the checksum of statecrypt"
    sum='shasum -a 256'
  fi
  fetch "$from/$archive" >"$work/archive"
  wanted=${SHA256:-$(fetch "$from/$archive.sha256" | cut -c 1-64)}
  test ${#wanted} -eq 64 || fail "there is no checksum of $from/$archive"
  test "$(clean $sum <"$work/archive" | cut -c 1-64)" = "$wanted" || fail "$from/$archive does not have the checksum $wanted"
  clean tar -xzf "$work/archive" -C "$work" statecrypt
  PATH=$work:$PATH
}

settings() {
  CONFIG=$work/plans.hcl
  if test "$1" = encrypt; then
    : "${RECIPIENTS:?a file with recipients is required, or config}"
    sed -e 's/[[:space:]]*$//' -e '/^#/d' "$RECIPIENTS" >"$work/recipients"
    key="recipients = compact(split(\"\\n\", file(\"$work/recipients\")))"
  else
    : "${IDENTITY:?an identity is required, or config}"
    if test -f "$IDENTITY"; then cat "$IDENTITY"; else printf '%s\n' "$IDENTITY"; fi >"$work/identity"
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
if test "$1" = install; then
  test ! -f "$work/statecrypt" || { mkdir -p "$INTO" && mv "$work/statecrypt" "$INTO"; }
  exit
fi
test -n "${CONFIG-}" || settings "$1"
statecrypt "$1" -config "$CONFIG" -plan -o "$PLAN" "$PLAN"

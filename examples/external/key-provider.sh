#!/bin/sh
# An external key provider for OpenTofu and for statecrypt.
#
#   key_provider "external" "keys" {
#     command = ["./key-provider.sh", "/etc/tofu/keys"]
#   }
#
# The folder holds one file for each key, with the base64 of its 32 bytes, and
# the file "current", with the name of the key for new files:
#
#   openssl rand -base64 32 >/etc/tofu/keys/2026-01
#   echo 2026-01 >/etc/tofu/keys/current
#
# To rotate, add a key and name it in "current". Old files are read as long as
# their key is there.
#
# The protocol: https://opentofu.org/docs/language/state/encryption/#external-experimental
set -eu

echo '{"magic":"OpenTofu-External-Key-Provider","version":1}'
input=$(cat)
keys=$1

# The name of a key becomes the name of a file: nothing else may pass.
check() {
	case $1 in
	'' | .* | *[!A-Za-z0-9._-]*)
		echo "this is not the name of a key" >&2
		exit 1
		;;
	esac
	if [ ! -f "$keys/$1" ]; then
		echo "there is no key $1" >&2
		exit 1
	fi
}

current=$(cat "$keys/current")
check "$current"
decryption=
# OpenTofu 1.10 says {"external_data":null} in place of null.
if [ "$input" != null ] && [ "$input" != '{"external_data":null}' ]; then
	# What this program stored in the file when it was sealed: {"external_data":{"key":"2026-01"}}
	stored=$(printf '%s' "$input" | sed -n 's/^{"external_data":{"key":"\([^"]*\)"}}$/\1/p')
	check "$stored"
	decryption=$(printf ',"decryption_key":"%s"' "$(cat "$keys/$stored")")
fi
printf '{"keys":{"encryption_key":"%s"%s},"meta":{"external_data":{"key":"%s"}}}\n' \
	"$(cat "$keys/$current")" "$decryption" "$current"

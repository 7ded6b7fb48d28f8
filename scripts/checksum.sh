#!/bin/sh
# Writes the checksum of a file as "sha256sum --check" reads it beside the file.
#
#   scripts/checksum.sh FILE CHECKSUM
set -eu
sum=$(cd "$(dirname "$1")" && sha256sum "$(basename "$1")")
echo "$sum" >"$2"

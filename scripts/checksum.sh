#!/bin/sh
# Writes the checksum of a file in the format that "sha256sum --check" reads in the folder of the file.
#
#   scripts/checksum.sh FILE CHECKSUM
set -eu
sum=$(cd "$(dirname "$1")" && sha256sum "$(basename "$1")")
echo "$sum" >"$2"

#!/bin/sh
# external key provider for tests (POSIX sh). Key table is selected by the "key_id" metadata field.
printf '%s\n' '{"magic":"OpenTofu-External-Key-Provider","version":1.0}'
IN=$(cat)
K_old='Hx4dHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA='
K_cur='AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='
case "$IN" in
  null|'{"external_data":null}') printf '{"keys":{"encryption_key":"%s"},"meta":{"external_data":{"key_id":"k-2024","rounds":7}}}\n' "$K_cur" ;;
  *'"key_id":"k-2024"'*) printf '{"keys":{"encryption_key":"%s","decryption_key":"%s"},"meta":{"external_data":{"key_id":"k-2024","rounds":7}}}\n' "$K_cur" "$K_cur" ;;
  *'"key_id":"k-2023"'*) printf '{"keys":{"encryption_key":"%s","decryption_key":"%s"},"meta":{"external_data":{"key_id":"k-2024","rounds":7}}}\n' "$K_cur" "$K_old" ;;
  *) echo "unknown metadata: $IN" >&2; exit 3 ;;
esac

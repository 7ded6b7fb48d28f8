#!/bin/sh
# toy external encryption method for tests (POSIX sh): substitutes the base64 letters and adds a tag. NOT encryption.
# usage: method.sh encrypt|decrypt <expected-key-b64-or-dash>
printf '%s\n' '{"magic":"OpenTofu-External-Encryption-Method","version":1,"extra":"ignored"}'
IN=$(cat)
KEY=$(printf '%s' "$IN" | sed -n 's/.*"key":"\([^"]*\)".*/\1/p')
PAYLOAD=$(printf '%s' "$IN" | sed -n 's/.*"payload":"\([^"]*\)".*/\1/p')
[ -n "$KEY" ] || KEY=-
if [ "$KEY" != "$2" ]; then echo "wrong key $KEY" >&2; exit 4; fi
TAG='VEFH'
if [ "$1" = encrypt ]; then
  HEAD=${PAYLOAD%????}; LAST=${PAYLOAD#"$HEAD"}   # the last group may carry padding bits: leave it alone
  OUT="$TAG$(printf '%s' "$HEAD" | tr 'A-Za-z' 'N-ZA-Mn-za-m')$LAST"
else
  case "$PAYLOAD" in "$TAG"*) ;; *) echo "bad tag" >&2; exit 5 ;; esac
  PAYLOAD=${PAYLOAD#"$TAG"}; HEAD=${PAYLOAD%????}; LAST=${PAYLOAD#"$HEAD"}
  OUT="$(printf '%s' "$HEAD" | tr 'N-ZA-Mn-za-m' 'A-Za-z')$LAST"
fi
printf '{"payload":"*%s"}\n' "$OUT"

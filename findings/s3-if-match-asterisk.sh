#!/bin/sh
# versitygw 1.8.0 (posix) and gofakes3 1.2.0: a PUT with "If-Match: *" is refused with 412 if the object exists. RFC 9110,
# section 13.1.1, says that the condition is true for any existing object.
#
# Guessed before: versitygw answers 501.
#
# Needs Go, curl 7.75 or newer, python3, and network access to a Go module proxy.
set -eu

dir=$(mktemp -d)
servers=''
trap 'kill $servers 2> /dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"
export GOBIN="$dir/bin" CGO_ENABLED=0 GOWORK=off
go install -trimpath -ldflags "-s -w" github.com/versity/versitygw/cmd/versitygw@v1.8.0
go install -trimpath -ldflags "-s -w" github.com/johannesboyne/gofakes3/cmd/gofakes3@v1.2.0
for program in versitygw gofakes3; do go version -m "bin/$program" | grep -E '^\smod' | awk '{ print $2, $3 }'; done
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
first=$(port)
mkdir store
ROOT_ACCESS_KEY=user ROOT_SECRET_KEY=secret bin/versitygw --port "127.0.0.1:$first" posix "$dir/store" > /dev/null 2>&1 &
servers="$servers $!"
second=$(port)
bin/gofakes3 -backend memory -host "127.0.0.1:$second" > /dev/null 2>&1 &
servers="$servers $!"

ask() { # ask METHOD URL [curl arguments]: prints the status
  method=$1 url=$2
  shift 2
  curl -s -o answer -w '%{http_code}' --retry 20 --retry-connrefused --retry-delay 1 --aws-sigv4 aws:amz:us-east-1:s3 \
    --user user:secret -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -X "$method" "$@" "$url"
}
for at in "versitygw $first" "gofakes3 $second"; do
  bucket=http://127.0.0.1:${at#* }/bucket
  seen="bucket $(ask PUT "$bucket"), object $(ask PUT "$bucket/o" -d one)"
  seen="$seen, If-Match: * $(ask PUT "$bucket/o" -d two -H 'If-Match: *')"
  etag=$(curl -s -I --aws-sigv4 aws:amz:us-east-1:s3 --user user:secret -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' "$bucket/o" |
    tr -d '\r' | awk 'tolower($1) == "etag:" { print $2 }')
  seen="$seen, If-Match: ETag $(ask PUT "$bucket/o" -d three -H "If-Match: $etag")"
  echo "${at% *}: $seen"
  test "$seen" = "bucket 200, object 200, If-Match: * 412, If-Match: ETag 200"
done

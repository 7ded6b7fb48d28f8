#!/bin/sh
# Runs the tests against real servers that take minutes to build, and at the end prints which servers were tested.
#
#   [SERVICES_TIME=600] scripts/services.sh
#
# With SERVICES_TIME, building ends after that number of seconds, and servers that are not built by then, or cannot be
# built on this machine, are left out. Without it, that is an error. A server that was built before takes no time.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
for v in $(env | sed -n 's/^\(TF_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$v"; done
export CHECKPOINT_DISABLE=1

start=$(date +%s)
ran='' missing=''
build() { # build TOOL VARIABLE: makes the tool, and sets the variable to its path for the tests
  tool=$1 variable=$2
  if [ -n "${SERVICES_TIME:-}" ]; then
    left=$((SERVICES_TIME - ($(date +%s) - start)))
    if [ "$left" -lt 1 ]; then left=1; fi
    if ! timeout "$left" make -s ".tools/bin/$tool"; then
      missing="$missing  not run  $tool (could not be built here in the time given)
"
      return
    fi
  else
    make -s ".tools/bin/$tool"
  fi
  export "$variable=$root/.tools/bin/$tool"
  ran="$ran  tested   $tool
"
}

found() { # found PROGRAM VARIABLE PACKAGE: sets the variable to the path of an installed program for the tests
  if path=$(PATH="$PATH:/usr/sbin" command -v "$1"); then
    export "$2=$path"
    ran="$ran  tested   $1
"
  else
    missing="$missing  not run  $1 (it is not installed; Debian has it in $3)
"
  fi
}

build vaultdev STATECRYPT_VAULT
build fake-gcs-server STATECRYPT_FAKE_GCS
build azurite STATECRYPT_AZURITE
build minio STATECRYPT_MINIO
build versitygw STATECRYPT_VERSITYGW
build consul STATECRYPT_CONSUL
build etcd STATECRYPT_ETCD
build kube-apiserver STATECRYPT_KUBE_APISERVER
build gitea STATECRYPT_GITEA
build rclone STATECRYPT_RCLONE
found apache2 STATECRYPT_APACHE apache2-bin
found lighttpd STATECRYPT_LIGHTTPD lighttpd-mod-webdav
found nginx STATECRYPT_NGINX 'nginx-light and libnginx-mod-http-dav-ext'

found gitolite STATECRYPT_GITOLITE gitolite3

# dulwich is installed with the system, for example with Debian's python3-dulwich.
for python in python3 /usr/bin/python3; do
  if [ -z "${STATECRYPT_DULWICH:-}" ] && "$python" -c 'import dulwich.web' 2>/dev/null; then
    STATECRYPT_DULWICH=$(command -v "$python")
    export STATECRYPT_DULWICH
    ran="$ran  tested   dulwich
"
  fi
done
if [ -z "${STATECRYPT_DULWICH:-}" ]; then
  missing="$missing  not run  dulwich (python3-dulwich is not installed)
"
fi

export STATECRYPT_TOFU="$root/.tools/bin/tofu" STATECRYPT_AGE="$root/.tools/bin/age" STATECRYPT_SOPS="$root/.tools/bin/sops"
packages=$(grep -rl --include='*_test.go' '^func TestReal' builtin encryption internal cmd | xargs -n 1 dirname | sort -u | sed 's|^|./|')
# shellcheck disable=SC2086 # packages have no spaces
CGO_ENABLED=0 .tools/bin/testsum --packages "$(go list $packages | tr '\n' ' ')" -- \
  -trimpath -vet=off -ldflags '-s -w' -count 1 -timeout 20m -run '^TestReal'
if [ -n "${STATECRYPT_VAULT:-}${STATECRYPT_GITEA:-}${STATECRYPT_FAKE_GCS:-}${STATECRYPT_AZURITE:-}" ]; then
  TESTS='^TestAcc(Real|Azure)' scripts/testacc.sh terraform .tools/bin/terraform-1.5.7 .tools/bin/tofu
fi

echo
echo "real servers:"
printf '%s%s' "$ran" "$missing"

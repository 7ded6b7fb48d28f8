#!/bin/sh
# Puts one pinned developer tool into .tools/bin.
#
# scripts/versions.txt has the versions of Terraform and OpenTofu that are tested,
# a line each, and behind one that needs it, the Go toolchain.
#
#   scripts/tool.sh tofu|tofu-X.Y.Z|terraform-X.Y.Z|age|sops|golangci-lint|testsum|tfplugindocs|goreleaser|actionlint|govulncheck|gremlins|vaultdev|minio|versitygw|fake-gcs-server|consul|etcd|kube-apiserver|gitea|rclone
#
# Tools are compiled from source through the Go module proxy; nothing else is
# downloaded. A compiled tool is kept in a cache directory of the user, under a
# checksum of everything that decides what it is, so that a second clone of this
# repository does not compile OpenTofu again. The cache may be deleted any time.
set -eu

name=$1
root=$(cd "$(dirname "$0")/.." && pwd)
cache=${STATECRYPT_TOOL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/statecrypt-tools}
exe=$(go env GOEXE)
ldflags='-s -w'

# A module under tools/ and a package of it, a package@version, or a release
# (module@version) and its main package.
module='' release='' package='' tags='' cgo=0
case $name in
tofu)
  module=tools/tofu package=github.com/opentofu/opentofu/cmd/tofu
  # Without this OpenTofu says that it is a -dev version, and version checks differ.
  ldflags="$ldflags -X github.com/opentofu/opentofu/version.dev=no"
  ;;
golangci-lint) module=tools/lint package=github.com/golangci/golangci-lint/v2/cmd/golangci-lint ;;
testsum) module=tools/testsum package=github.com/statecrypt/terraform-provider-statecrypt/tools/testsum ;;
tfplugindocs) module=tools/docs package=github.com/hashicorp/terraform-plugin-docs/cmd/tfplugindocs ;;
vaultdev) module=tools/vault package=github.com/statecrypt/terraform-provider-statecrypt/tools/vault ;;
fake-gcs-server) module=tools/fakegcs package=github.com/fsouza/fake-gcs-server ;;
consul) module=tools/consul package=github.com/statecrypt/terraform-provider-statecrypt/tools/consul ;;
etcd) module=tools/etcd package=go.etcd.io/etcd/server/v3 ;;
kube-apiserver)
  module=tools/kubeapiserver package=k8s.io/kubernetes/cmd/kube-apiserver
  # Clients cannot make sense of the version that it has without this.
  ldflags="$ldflags -X k8s.io/component-base/version.gitVersion=v1.36.3"
  ;;
gitea)
  module=tools/gitea package=code.gitea.io/gitea tags='sqlite sqlite_unlock_notify'
  cgo=1 # its SQLite is C; without a compiler there is no use in going on
  ;;
goreleaser) module=tools/release package=github.com/goreleaser/goreleaser/v2 ;;
# Each by its own go.mod, since its replace directives are part of what it is.
tofu-[0-9]*)
  release=github.com/opentofu/opentofu@v${name#tofu-} package=./cmd/tofu
  ldflags="$ldflags -X github.com/opentofu/opentofu/version.dev=no"
  ;;
terraform-[0-9]*)
  release=github.com/hashicorp/terraform@v${name#terraform-} package=.
  ldflags="$ldflags -X github.com/hashicorp/terraform/version.dev=no"
  ;;
# Not by our own go.mod: the program needs modules that its library does not.
age) package=filippo.io/age/cmd/age@v1.3.2 ;;
sops) package=github.com/getsops/sops/v3/cmd/sops@v3.13.3 ;;
# Its only version on the proxy; it has no replace directives.
minio) package=github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c ;;
versitygw) package=github.com/versity/versitygw/cmd/versitygw@v1.8.0 ;;
rclone) package=github.com/rclone/rclone@v1.76.0 ;;
gremlins) package=github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 ;;
govulncheck) package=golang.org/x/vuln/cmd/govulncheck@v1.9.0 ;;
actionlint) package=github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 ;;
*)
  echo "tool.sh: no tool is called $name" >&2
  exit 2
  ;;
esac

# Settings for the project's own build must not change what a tool is.
unset GOFLAGS GOEXPERIMENT
export GOWORK=off
# Without C, as releases are built, so that what tools and the provider have in
# common is compiled once. gitea is the exception.
export CGO_ENABLED=$cgo
toolchain=$(sed -n "s/^$name \(go[0-9.]*\).*/\1/p" "$root/scripts/versions.txt")
[ -z "$toolchain" ] || export GOTOOLCHAIN="$toolchain"

key=$(
  {
    echo "$release$package $ldflags${tags:+ $tags}"
    cat "$root/scripts/tool.sh"
    go env GOVERSION GOOS GOARCH
    [ -z "$module" ] || cat "$root/$module/go.mod" "$root/$module/go.sum"
    [ "${package##*/tools/}" = "$package" ] || cat "$root/$module/main.go"
  } | git hash-object --stdin
)
built=$cache/$key/$name$exe

# Copies a release to where it can be built. The module proxy has only its main
# module; backends that are modules of their own inside it become stubs.
unpack() { # unpack module@version into
  go mod download "$1"
  cp -R "$(go list -m -f '{{.Dir}}' "$1")" "$2"
  chmod -R u+w "$2"
  sed -n 's/^replace \([^ ]*\) => \.\/\(.*\)$/\1 \2/p' "$2/go.mod" | while read -r nested folder; do
    mkdir -p "$2/$folder"
    [ -f "$2/$folder/go.mod" ] || stub "$nested" "$2/$folder"
  done
  ! grep -q 'hashicorp/go-tfe/v2 v2.6.0$' "$2/go.mod" || (cd "$2" && lacking)
}

# Terraform 1.17.0-beta1 requires a version of this module that the proxy does not have. With an older one, only a
# query with policies in HCP Terraform does nothing.
lacking() {
  go mod edit -replace github.com/hashicorp/go-tfe/v2=github.com/hashicorp/go-tfe/v2@v2.1.0
  go mod download github.com/hashicorp/go-tfe/v2
  sed -e '/tfev2models "/d' -e '/^func .*createQueryRunV2(/,/^}/{/^func/!{/^}/!d;};s/^}/\tpanic("stub; see scripts\/tool.sh")\n}/;}' \
    internal/cloud/backend_query.go >amended && mv amended internal/cloud/backend_query.go
}

stub() { # stub module folder: a backend that does nothing but exist
  backend=${1##*/}
  [ "$backend" != azure ] || backend=azurerm
  echo "module $1" >"$2/go.mod"
  cat >"$2/stub.go" <<END
package stub

import "github.com/hashicorp/terraform/internal/backend"

func New() backend.Backend { panic("stub of the backend $backend; see scripts/tool.sh") }
END
}

# Runs a go command, and says every half minute how many packages it compiled.
compile() { # compile command arguments...
  command=$1
  shift
  (
    while sleep 30 >/dev/null 2>&1 && kill -0 $$; do
      echo "    … $name: $(grep -vc '^go: ' "$work/log") packages compiled" >&2
    done
  ) &
  beat=$!
  status=0
  go "$command" -v -trimpath -ldflags "$ldflags" "$@" 2>"$work/log" || status=$?
  kill $beat 2>/dev/null || true
  [ $status -eq 0 ] || tail -n 40 "$work/log" >&2
  return $status
}

if [ ! -x "$built" ]; then
  echo "building $name from source (once for this version; large ones take minutes)" >&2
  mkdir -p "$cache/$key"
  work=$(mktemp -d "$cache/$key/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  if [ -n "$module" ]; then
    cd "$root/$module"
    compile build -buildvcs=false -tags "$tags" -o "$work/$name$exe" "$package"
  elif [ -n "$release" ]; then
    cd "$work" # where no go.mod asks for a newer toolchain
    unpack "$release" "$work/source"
    cd "$work/source"
    compile build -buildvcs=false -o "$work/$name$exe" "$package"
  else
    export GOBIN="$work"
    compile install "$package"
    binary=${package%@*}
    binary=${binary##*/}
    [ "$binary" = "$name" ] || mv "$work/$binary$exe" "$work/$name$exe"
  fi
  mv "$work/$name$exe" "$built" # in one step: another clone may be looking
fi

cd "$root"
mkdir -p .tools/bin
cp "$built" ".tools/bin/.$name.$$"
mv ".tools/bin/.$name.$$" ".tools/bin/$name"

#!/bin/sh
# Puts Azurite, Microsoft's emulator of Azure Storage, into .tools/bin/azurite.
# It serves blobs only, and passes its arguments on. Node and npm are needed.
#
# tools/azurite/package-lock.json pins everything that is installed, with checksums. No install script of a package
# runs. As in tool.sh, the result is kept in a cache directory of the user, which may be deleted at any time.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cache=${STATECRYPT_TOOL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/statecrypt-tools}
key=$(cat "$root/tools/azurite/package.json" "$root/tools/azurite/package-lock.json" | git hash-object --stdin)
built=$cache/$key/azurite

if [ ! -d "$built" ]; then
  echo "installing azurite with npm (once for this version)" >&2
  mkdir -p "$cache/$key"
  work=$(mktemp -d "$cache/$key/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cp "$root/tools/azurite/package.json" "$root/tools/azurite/package-lock.json" "$work/"
  (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
  mv -T "$work" "$built" 2>/dev/null || [ -d "$built" ] || mv "$work" "$built" # in one step, because another clone may look for it
fi

mkdir -p "$root/.tools/bin"
cat >"$root/.tools/bin/.azurite.$$" <<EOF
#!/bin/sh
exec node "$built/node_modules/azurite/dist/src/blob/main.js" "\$@"
EOF
chmod +x "$root/.tools/bin/.azurite.$$"
mv "$root/.tools/bin/.azurite.$$" "$root/.tools/bin/azurite"

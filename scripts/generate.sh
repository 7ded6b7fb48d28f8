#!/bin/sh
# Writes docs/ from the schema of the provider in this directory, templates/ with its pictures, and examples/. A CLI
# prints the schema, because tfplugindocs would otherwise download one. With -check, it fails if docs/ changes. It
# compares docs/ with its content before, not with the last commit, so it also works between commits.
#
#   scripts/generate.sh [-check]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cli=$("$root/scripts/cli.sh")

for v in $(env | sed -n 's/^\(TF_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$v"; done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

cat >"$work/cli.tfrc" <<END
provider_installation {
  dev_overrides {
    "statecrypt/statecrypt" = "$root"
  }
  direct {
    exclude = ["*/*/*"]
  }
}
END
cat >"$work/main.tf" <<'END'
terraform {
  required_providers {
    statecrypt = { source = "statecrypt/statecrypt" }
  }
}
END
export CHECKPOINT_DISABLE=1 TF_CLI_CONFIG_FILE="$work/cli.tfrc"

# tfplugindocs looks for the provider in the namespace hashicorp of Terraform's registry, even if OpenTofu wrote the
# schema.
(cd "$work" && "$cli" providers schema -json 2>schema.err >schema.raw) || {
  cat "$work/schema.err" >&2
  exit 1
}
sed 's#"registry\.[a-z.]*/statecrypt/statecrypt"#"registry.terraform.io/hashicorp/statecrypt"#' "$work/schema.raw" >"$work/schema.json"

cd "$root"
cp -R docs "$work/docs"
run() {
  "$root/.tools/bin/tfplugindocs" "$@" --provider-name statecrypt --providers-schema "$work/schema.json" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
  }
}
rm -rf docs/pictures # validate does not know the files in there
run generate --rendered-provider-name statecrypt
run validate
cd docs
split() {
  awk -f ../scripts/split.awk "$@" >"$work/page"
  for page; do :; done
  mv "$work/page" "$page"
}
split -v write=1 data-sources/remote_state.md
for page in data-sources/resource.md ephemeral-resources/remote_state.md ephemeral-resources/resource.md; do split "$page"; done
split -v write=1 index.md
{
  printf '\n| Variable | Arguments |\n|---|---|\n'
  awk -f ../scripts/variables.awk data-sources/remote_state.md guides/*.md | LC_ALL=C sort -t '`' -k 2,2 |
    awk -F ' [|] ' '{ if (!($2 in row)) order[++n] = $2; row[$2] = row[$2] (row[$2] == "" ? "| " : ", ") substr($1, 3) }
      END { for (i = 1; i <= n; i++) print row[order[i]] " | " order[i] }' # variables of the same arguments
} >>guides/variables.md
# helps NAME… prints the help of commands with flags, each under a heading.
helps() {
  for name; do
    printf '\n## %s\n\n```text\n' "$name"
    cat "../cmd/statecrypt/text/$name.txt"
    printf '```\n'
  done
}
helps statecrypt decrypt encrypt inspect verify rotate wrap recover key-provider >>guides/command.md
helps show diff history restore outputs >>guides/looking-at-states.md
cd ..
"$root/.tools/bin/pictures" templates/pictures docs/pictures
if [ "${1:-}" = -check ] && ! diff -ru "$work/docs" docs; then
  echo 'docs/ changed: run "make generate", and commit the result' >&2
  exit 1
fi
echo "docs/ is up to date"

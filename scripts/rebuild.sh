#!/usr/bin/env bash
# Builds a release again, from its tag, and compares the contents of its archives with the result, byte by byte. So a
# user who trusts the source need not trust the machine that built the release.
#
#   scripts/rebuild.sh 0.1.0                       # the archives of the release for this platform, which it downloads
#   scripts/rebuild.sh 0.1.0 FOLDER                # all archives in FOLDER
#   scripts/rebuild.sh 0.1.0 FOLDER REPOSITORY     # from the tag in another repository
#
# It requires Go, git, unzip and, to download, curl. Go fetches the version of itself that
# built the release. The signatures of the archives are not checked: the guide on
# installing says how.
set -euo pipefail
if [ $# -lt 1 ] || [ $# -gt 3 ]; then
  sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p;}' "$0" >&2
  exit 2
fi
project=https://github.com/statecrypt/terraform-provider-statecrypt
version=${1#v} folder=${2-} repository=${3-$project.git}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

if [ -z "$folder" ]; then
  folder=$work/downloads platform=$(go env GOOS)_$(go env GOARCH)
  mkdir "$folder"
  for name in "terraform-provider-statecrypt_${version}_$platform.zip" "statecrypt_${version}_$platform.tar.gz"; do
    echo "downloading $name"
    curl --fail --silent --show-error --location --output "$folder/$name" "$project/releases/download/v$version/$name"
  done
fi
folder=$(cd "$folder" && pwd)

# The clone is complete, like the one of the release: the tags of a commit are part of a program.
git -c advice.detachedHead=false -c core.autocrlf=false clone --quiet --branch "v$version" "$repository" "$work/source"

# Go settings in the caller's shell, or from "go env -w", must not change the build, except for the places where
# modules come from and are kept.
kept='GOPROXY GONOPROXY GOSUMDB GONOSUMDB GOPRIVATE GOPATH GOCACHE GOMODCACHE'
for v in $(env | sed -n 's/^\(GO[A-Z0-9]*\)=.*/\1/p'); do
  case " $kept GOENV " in *" $v "*) ;; *) unset "$v" ;; esac
done
for v in $kept; do export "$v=$(go env "$v")"; done
export GOENV=off

differ=0 archives=0
compare() { # compare ARCHIVE FILE OURS
  if cmp -s "$work/theirs/$2" "$3"; then
    echo "the same: $1: $2"
  else
    echo "DIFFERS:  $1: $2"
    differ=1
  fi
}

for archive in "$folder"/terraform-provider-statecrypt_"$version"_*.zip "$folder"/statecrypt_"$version"_*.tar.gz; do
  [ -f "$archive" ] || continue
  archives=$((archives + 1))
  name=${archive##*/}
  rm -rf "$work/theirs"
  mkdir "$work/theirs"
  case $name in
  *.zip) unzip -q "$archive" -d "$work/theirs" && program=terraform-provider-statecrypt_v$version main=. stem=${name%.zip} ;;
  *) tar -xzf "$archive" -C "$work/theirs" && program=statecrypt main=./cmd/statecrypt stem=${name%.tar.gz} ;;
  esac
  os=${stem%_*} os=${os##*_} arch=${stem##*_}
  [ "$os" != windows ] || program=$program.exe
  if [ ! -f "$work/theirs/$program" ]; then
    echo "DIFFERS:  $name: there is no $program"
    differ=1
    continue
  fi
  go=$(go version "$work/theirs/$program")
  # These are the settings in .goreleaser.yml.
  (
    cd "$work/source"
    GOTOOLCHAIN=${go##* } CGO_ENABLED=0 GOOS=$os GOARCH=$arch GOARM=6 \
      go build -trimpath -ldflags "-s -w -X main.version=$version" -o "$work/ours" "$main"
  )
  while IFS= read -r file; do
    case $file in
    "$program") compare "$name" "$file" "$work/ours" ;;
    *) compare "$name" "$file" "$work/source/$file" ;;
    esac
  done < <(cd "$work/theirs" && find . -type f -o -type l | sed 's/^\.\///' | LC_ALL=C sort)
done

if [ $archives -eq 0 ]; then
  echo "there is no archive of $version in $folder" >&2
  exit 1
fi
exit $differ

#!/bin/sh
# OpenTofu for the suite. TOFU names the program, if it is not in PATH.
set -eu
[ "${CASE_TASK-}" != write ] || exit 77 # it writes only states of its own
case $CASE_KIND in
opentofu_state | plain_state) [ -z "${CASE_READER-}" ] || exit 77 ;; # readers belong to modules, which no case has
*) exit 77 ;;
esac
cat >terraform.tfstate
printf 'terraform {\n  encryption {\n%s\n  }\n}\n' "${CASE_CODE-}" >main.tf
[ -n "${CASE_CODE-}" ] || : >main.tf
exec "${TOFU:-tofu}" state pull

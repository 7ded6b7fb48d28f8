#!/bin/sh
# "statecrypt decrypt" and "statecrypt encrypt" for the suite. STATECRYPT names the program, if it is not in PATH.
set -eu
cat >state
statecrypt=${STATECRYPT:-statecrypt}

# outer has the method KIND with SETTINGS open the file, and what the case says open what
# is in it.
outer() {
  printf %s "${TF_ENCRYPTION-}" >settings.hcl
  then=${TF_ENCRYPTION:+then = method.aes_gcm.m}
  export TF_ENCRYPTION="method \"$1\" \"outer\" {
  $2
  $then
}
state {
  method = method.$1.outer
}"
}

# keys is a list with the private key in FILE, if the case has it.
keys() {
  [ ! -f "$2" ] || printf '%s = [<<KEY\n%s\nKEY\n]\n' "$1" "$(cat "$2")"
}

# Programs that only the environment names are not run, so that what nothing is merged
# over counts as code.
if [ -n "${CASE_CODE-}" ]; then
  printf %s "$CASE_CODE" >settings.hcl
else
  printf %s "${TF_ENCRYPTION-}" >settings.hcl
  case $CASE_KIND in opentofu_*) unset TF_ENCRYPTION ;; esac
fi
verb=decrypt
[ "${CASE_TASK-}" != write ] || verb=encrypt
case $CASE_KIND in
opentofu_plan) exec "$statecrypt" $verb -config settings.hcl -plan state ;;
kubeform_module) outer kubeform "key = \"$CASE_KEY\"" ;;
sops) outer sops "$(keys age_identities age_identity.txt)
$(keys pgp_private_keys pgp_private.asc)" ;;
terraform_backend_git)
  if [ -n "${TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE-}" ]; then
    outer terraform_backend_git "passphrase = \"$TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE\""
  else
    outer unencrypted ''
  fi
  ;;
plain_state) # whose outputs are what there is to read
  outer unencrypted ''
  "$statecrypt" decrypt -config settings.hcl -o plain state
  exec "$statecrypt" outputs -sensitive plain
  ;;
*) [ -z "${CASE_READER-}" ] || exit 77 ;;
esac
exec "$statecrypt" $verb -config settings.hcl state

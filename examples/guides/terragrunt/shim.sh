statecrypt shim ~/.shims
export PATH="$HOME/.shims:$PATH" STATECRYPT_CONFIG=keys.hcl

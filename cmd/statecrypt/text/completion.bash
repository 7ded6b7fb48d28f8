_statecrypt() {
  local words i
  if [[ ${COMP_WORDS[1]} == wrap ]]; then
    for ((i = 2; i < COMP_CWORD; i++)); do
      [[ ${COMP_WORDS[i]} == -- ]] && { _statecrypt_wrapped $((i + 1)); return; }
    done
  fi
  case $COMP_CWORD,${COMP_WORDS[1]} in
    1,*) words='COMMANDS help' ;;
    2,key-provider) words='age' ;;
    *,COMMAND) words='FLAGS' ;;
    *,completion) words='bash zsh fish powershell' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
# What is wrapped completes its own arguments, as after "complete -C terraform".
_statecrypt_wrapped() {
  local words='terraform tofu'
  if (( COMP_CWORD > $1 )); then
    case ${COMP_WORDS[$1]##*/} in
      terraform*|tofu*) words=$(COMP_LINE="${COMP_WORDS[*]:$1}" "${COMP_WORDS[$1]}" 2>/dev/null) ;;
      *) words='' ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _statecrypt statecrypt

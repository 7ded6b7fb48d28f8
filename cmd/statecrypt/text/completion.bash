_statecrypt() {
  local words i
  if [[ ${COMP_WORDS[1]} == wrap ]]; then
    for ((i = 2; i < COMP_CWORD; i++)); do
      [[ ${COMP_WORDS[i]} == -- ]] && { _statecrypt_wrapped $((i + 1)); return; }
    done
  fi
  case $COMP_CWORD,${COMP_WORDS[1]} in
    1,*) words='inspect decrypt encrypt verify rotate outputs wrap recover key-provider completion version help' ;;
    *,inspect) words='-config -backend -prefix -var -var-file -json' ;;
    *,decrypt) words='-config -var -var-file -lineage -minimum-serial -plan -o -force' ;;
    *,encrypt) words='-config -var -var-file -plan -o' ;;
    *,verify) words='-config -backend -var -var-file -lineage -minimum-serial -plan -json' ;;
    *,rotate) words='-from -to -again -backend -prefix -var -var-file -plan -json' ;;
    *,outputs) words='-only -sensitive -o -force' ;;
    *,wrap) words='-config -var -var-file -force -accept -encrypt-existing -leave -lineage -minimum-serial' ;;
    *,recover) words='-config -var -var-file -unlock -force' ;;
    2,key-provider) words='age' ;;
    *,key-provider) words='-r -R -i' ;;
    *,completion) words='bash zsh fish' ;;
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

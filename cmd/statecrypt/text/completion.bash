_statecrypt() {
  local words
  case $COMP_CWORD,${COMP_WORDS[1]} in
    1,*) words='inspect decrypt encrypt verify outputs wrap completion help -version' ;;
    *,inspect) words='-json' ;;
    *,decrypt) words='-config -plan -o -force' ;;
    *,encrypt) words='-config -plan -o' ;;
    *,verify) words='-config -plan' ;;
    *,outputs) words='-only -sensitive -o -force' ;;
    *,wrap) words='-config -force -encrypt-existing -leave -lineage -minimum-serial' ;;
    *,completion) words='bash zsh fish' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _statecrypt statecrypt

_statecrypt() {
  local words
  case $COMP_CWORD,${COMP_WORDS[1]} in
    1,*) words='inspect decrypt encrypt verify rotate outputs wrap completion help -version' ;;
    *,inspect) words='-json' ;;
    *,decrypt) words='-config -var -var-file -lineage -minimum-serial -plan -o -force' ;;
    *,encrypt) words='-config -var -var-file -plan -o' ;;
    *,verify) words='-config -var -var-file -lineage -minimum-serial -plan -json' ;;
    *,rotate) words='-from -to -var -var-file -plan -json' ;;
    *,outputs) words='-only -sensitive -o -force' ;;
    *,wrap) words='-config -var -var-file -force -encrypt-existing -leave' ;;
    *,completion) words='bash zsh fish' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _statecrypt statecrypt

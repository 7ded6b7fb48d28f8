#compdef statecrypt
_statecrypt() {
  if (( CURRENT == 2 )); then
    compadd -- inspect decrypt encrypt verify outputs wrap completion help -version
    return
  fi
  case $words[2] in
    inspect) compadd -- -json ;;
    decrypt) compadd -- -config -plan -o -force ;;
    encrypt) compadd -- -config -plan -o ;;
    verify) compadd -- -config -plan ;;
    outputs) compadd -- -only -sensitive -o -force ;;
    wrap) compadd -- -config -force -encrypt-existing -leave -lineage -minimum-serial ;;
    completion) compadd -- bash zsh fish && return ;;
  esac
  _files
}
compdef _statecrypt statecrypt

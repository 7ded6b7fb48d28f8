#compdef statecrypt
_statecrypt() {
  if (( CURRENT == 2 )); then
    compadd -- COMMANDS help
    return
  fi
  local wrapped=${words[(i)--]}
  if [[ $words[2] == wrap ]] && (( wrapped < CURRENT )); then
    shift $wrapped words
    (( CURRENT -= wrapped ))
    _normal
    return
  fi
  if [[ $words[2] == key-provider ]] && (( CURRENT == 3 )); then
    compadd -- age
    return
  fi
  case $words[2] in
    COMMAND) compadd -- FLAGS ;;
    completion) compadd -- bash zsh fish powershell && return ;;
  esac
  _files
}
if [[ $funcstack[1] == _statecrypt ]]; then # read from $fpath, by the first completion
  _statecrypt "$@"
else
  compdef _statecrypt statecrypt
fi

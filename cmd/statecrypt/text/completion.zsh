#compdef statecrypt
_statecrypt() {
  if (( CURRENT == 2 )); then
    compadd -- inspect decrypt encrypt verify rotate outputs wrap recover key-provider completion version help
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
    inspect) compadd -- -config -backend -prefix -var -var-file -json ;;
    decrypt) compadd -- -config -var -var-file -lineage -minimum-serial -plan -o -force ;;
    encrypt) compadd -- -config -var -var-file -plan -o ;;
    verify) compadd -- -config -backend -var -var-file -lineage -minimum-serial -plan -json ;;
    rotate) compadd -- -from -to -again -backend -prefix -var -var-file -plan -json ;;
    outputs) compadd -- -only -sensitive -o -force ;;
    wrap) compadd -- -config -var -var-file -force -accept -encrypt-existing -leave -lineage -minimum-serial ;;
    recover) compadd -- -config -var -var-file -unlock -force ;;
    key-provider) compadd -- -r -R -i ;;
    completion) compadd -- bash zsh fish && return ;;
  esac
  _files
}
if [[ $funcstack[1] == _statecrypt ]]; then # read from $fpath, by the first completion
  _statecrypt "$@"
else
  compdef _statecrypt statecrypt
fi

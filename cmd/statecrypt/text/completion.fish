complete -c statecrypt -n __fish_use_subcommand -f -a 'COMMANDS help'
complete -c statecrypt -n '__fish_seen_subcommand_from COMMAND' FLAG
complete -c statecrypt -n '__fish_seen_subcommand_from key-provider' -f -a age
complete -c statecrypt -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish powershell'
complete -c statecrypt -n '__fish_seen_subcommand_from wrap; and contains -- -- (commandline -opc)' -x \
  -a "(complete -C (string replace -r '^.*? -- ' '' -- (commandline -cp)))"

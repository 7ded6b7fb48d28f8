complete -c statecrypt -n __fish_use_subcommand -f -a 'inspect decrypt encrypt verify rotate outputs wrap recover key-provider completion version help'
complete -c statecrypt -n '__fish_seen_subcommand_from inspect decrypt encrypt verify wrap recover' -o config -r
complete -c statecrypt -n '__fish_seen_subcommand_from inspect decrypt encrypt verify rotate wrap recover' -o var -x
complete -c statecrypt -n '__fish_seen_subcommand_from inspect decrypt encrypt verify rotate wrap recover' -o var-file -r
complete -c statecrypt -n '__fish_seen_subcommand_from decrypt verify' -o lineage -x
complete -c statecrypt -n '__fish_seen_subcommand_from decrypt verify' -o minimum-serial -x
complete -c statecrypt -n '__fish_seen_subcommand_from rotate' -o from -r
complete -c statecrypt -n '__fish_seen_subcommand_from rotate' -o to -r
complete -c statecrypt -n '__fish_seen_subcommand_from rotate' -o again
complete -c statecrypt -n '__fish_seen_subcommand_from inspect rotate verify' -o backend
complete -c statecrypt -n '__fish_seen_subcommand_from inspect rotate' -o prefix -x
complete -c statecrypt -n '__fish_seen_subcommand_from decrypt encrypt verify rotate' -o plan
complete -c statecrypt -n '__fish_seen_subcommand_from decrypt encrypt outputs' -s o -r
complete -c statecrypt -n '__fish_seen_subcommand_from decrypt outputs wrap recover' -o force
complete -c statecrypt -n '__fish_seen_subcommand_from wrap' -o accept
complete -c statecrypt -n '__fish_seen_subcommand_from wrap' -o encrypt-existing
complete -c statecrypt -n '__fish_seen_subcommand_from wrap' -o leave
complete -c statecrypt -n '__fish_seen_subcommand_from wrap' -o lineage -x
complete -c statecrypt -n '__fish_seen_subcommand_from wrap' -o minimum-serial -x
complete -c statecrypt -n '__fish_seen_subcommand_from inspect verify rotate' -o json
complete -c statecrypt -n '__fish_seen_subcommand_from outputs' -o only -x
complete -c statecrypt -n '__fish_seen_subcommand_from outputs' -o sensitive
complete -c statecrypt -n '__fish_seen_subcommand_from recover' -o unlock -x
complete -c statecrypt -n '__fish_seen_subcommand_from key-provider' -f -a age
complete -c statecrypt -n '__fish_seen_subcommand_from key-provider' -s r -x
complete -c statecrypt -n '__fish_seen_subcommand_from key-provider' -s R -r
complete -c statecrypt -n '__fish_seen_subcommand_from key-provider' -s i -r
complete -c statecrypt -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'
complete -c statecrypt -n '__fish_seen_subcommand_from wrap; and contains -- -- (commandline -opc)' -x \
  -a "(complete -C (string replace -r '^.*? -- ' '' -- (commandline -cp)))"

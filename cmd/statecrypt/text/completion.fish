complete -c statecrypt -n __fish_use_subcommand -f -a 'inspect decrypt encrypt verify outputs wrap completion help -version'
complete -c statecrypt -n '__fish_seen_subcommand_from decrypt encrypt verify wrap' -o config -r
complete -c statecrypt -n '__fish_seen_subcommand_from decrypt encrypt verify' -o plan
complete -c statecrypt -n '__fish_seen_subcommand_from decrypt encrypt outputs' -s o -r
complete -c statecrypt -n '__fish_seen_subcommand_from decrypt outputs wrap' -o force
complete -c statecrypt -n '__fish_seen_subcommand_from wrap' -o encrypt-existing
complete -c statecrypt -n '__fish_seen_subcommand_from wrap' -o leave
complete -c statecrypt -n '__fish_seen_subcommand_from wrap' -o lineage -x
complete -c statecrypt -n '__fish_seen_subcommand_from wrap' -o minimum-serial -x
complete -c statecrypt -n '__fish_seen_subcommand_from inspect' -o json
complete -c statecrypt -n '__fish_seen_subcommand_from outputs' -o only -x
complete -c statecrypt -n '__fish_seen_subcommand_from outputs' -o sensitive
complete -c statecrypt -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'

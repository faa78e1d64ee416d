# Completion of the command jot for fish.
set -l names run check grad convert print time devices help
complete -c jot -n "not __fish_seen_subcommand_from $names" -f -a "$names --version"
complete -c jot -n '__fish_seen_subcommand_from help' -f -a "$names"
complete -c jot -n '__fish_seen_subcommand_from devices' -f
complete -c jot -l help -d 'tell more'
complete -c jot -n '__fish_seen_subcommand_from run grad print time' -l input -r -d 'an argument'
complete -c jot -n '__fish_seen_subcommand_from run check grad print time devices' -l device -x -a 'host cuda'
complete -c jot -n '__fish_seen_subcommand_from run grad print time' -l function -x -d 'of the program'
complete -c jot -n '__fish_seen_subcommand_from run grad print time' -l tf32 -d 'products of f32 by TF32'
complete -c jot -n '__fish_seen_subcommand_from run grad time' -l tune -d 'keep the fastest of several ways to compile'
complete -c jot -n '__fish_seen_subcommand_from run grad' -l output-dir -x -a '(__fish_complete_directories)'
complete -c jot -n '__fish_seen_subcommand_from grad' -l wrt -x -d 'arguments, as 0,2'
complete -c jot -n '__fish_seen_subcommand_from grad' -l output -x -d 'the result'
complete -c jot -n '__fish_seen_subcommand_from print' -l stage -x -a 'trace simplify schedule memory llvm code'
complete -c jot -n '__fish_seen_subcommand_from time' -l against -x -a python

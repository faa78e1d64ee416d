# Completion of the command jot for bash.
_jot()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options=
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ]; then
        COMPREPLY=($(compgen -W 'run check grad convert print time devices help --version --help' -- "$word"))
        return
    fi
    case $before in
    help) COMPREPLY=($(compgen -W 'run check grad convert print time devices' -- "$word")) ;;
    --device) COMPREPLY=($(compgen -W 'host cuda' -- "$word")) ;;
    --stage) COMPREPLY=($(compgen -W 'trace simplify schedule memory llvm code' -- "$word")) ;;
    --against) COMPREPLY=($(compgen -W 'python' -- "$word")) ;;
    --output-dir) COMPREPLY=($(compgen -d -- "$word")) ;;
    --function | --wrt | --output) ;;
    *)
        case ${COMP_WORDS[1]} in
        run) options='--input --output-dir --device --function --tf32 --tune' ;;
        check | devices) options='--device' ;;
        grad) options='--input --output-dir --device --function --tf32 --tune --wrt --output' ;;
        print) options='--input --device --function --tf32 --stage' ;;
        time) options='--input --device --function --tf32 --tune --against' ;;
        esac
        case $word in
        -*) COMPREPLY=($(compgen -W "$options --help" -- "$word")) ;;
        *) [ "${COMP_WORDS[1]}" = devices ] ||
            COMPREPLY=($(compgen -f -- "$word")) ;;
        esac
        ;;
    esac
}
complete -o filenames -F _jot jot

# bash breaks words at @ and : as well. Here `@last` and `ID:path` are one word.
_sessile_complete() {
    # After `ID:` comes a path in the session, which is not completed.
    [[ ${COMP_LINE:0:COMP_POINT} == *: ]] && return
    local -a whole=()
    local i last cursor=$COMP_CWORD
    for i in "${!COMP_WORDS[@]}"; do
        last=$((${#whole[@]} - 1))
        if ((i > 0)) && [[ ${COMP_WORDS[i]} == :* || ${whole[last]} == *[@:] ]] &&
            [[ -n ${COMP_WORDS[i]} && $COMP_LINE == *"${whole[last]}${COMP_WORDS[i]}"* ]]; then
            whole[last]+=${COMP_WORDS[i]}
            ((i > COMP_CWORD)) || ((cursor -= 1))
        else
            whole+=("${COMP_WORDS[i]}")
        fi
    done
    local -a COMP_WORDS=("${whole[@]}")
    local COMP_CWORD=$cursor
    _clap_complete_sessile "$1" "${whole[cursor]}" "$3"
}
complete -o nospace -o bashdefault -o nosort -F _sessile_complete sessile 2> /dev/null ||
    complete -o nospace -o bashdefault -F _sessile_complete sessile

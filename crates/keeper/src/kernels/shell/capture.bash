# Writes the whole state of a live bash to a file: records for the keeper, among
# them a script that brings the state back in a fresh kernel.
#
# Called   . capture OUT TRAPS ARG…   in a forked subshell that has just done
#          POSIXLY_CORRECT=$?/$-/$BASHOPTS/$SHELLOPTS/${POSIXLY_CORRECT+=$POSIXLY_CORRECT}
#          TRAPS is the text of `trap -p` (sourcing hides DEBUG and RETURN, so
#          it has to be taken outside), ARG… the positional parameters.
# Writes   KIND NUL NAME NUL VALUE NUL …; the last record is `end`. A stream
#          without it is incomplete and worth nothing.
#
# Invariants
# - Nothing of the user's runs: every command word is `\builtin …` (no alias, no
#   function), or a special builtin while POSIX mode puts those before functions.
#   The caller turns that mode on by an assignment, the only thing that nobody
#   can redefine; the value carries what the mode itself would overwrite.
# - No external command, no PATH, no temporary file. One fork lists variables
#   and function names, one more prints the function bodies.
# - Time in proportion to the state, which may be 10,000 variables or one of a
#   megabyte: what grows is an array, printed at once, never a string. Listing
#   variables is quadratic in bash itself, so that it is done but once.
# - Our variables are called __sessile_*. If the user has such names (they might
#   be readonly), this file runs under a longer prefix instead.
# - What a fresh kernel reads back was printed by bash for that purpose
#   (declare -p, %q) or is fixed text, so no value can end a restore half-way.
# It must not be sourced in the user's shell itself: it wrecks its own options.

# No reserved word before aliases are off: `if` may be one.
\set +e +u +k +v +x +a +E +T +C
\trap - DEBUG ERR RETURN EXIT
\exec </dev/null 2>/dev/null
\export -f builtin && \set -- "$1" "$2" "$(\unset -f declare; \declare -f builtin)" "${@:3}" || \set -- "$1" "$2" '' "${@:3}"
\unset -f builtin || \exit 1
# If it was disabled, that is not brought back: no kernel of ours does without.
\builtin : || \enable builtin
\builtin shopt -u expand_aliases
# One listing, a line an item, before there is any variable of ours.
\builtin set -- "$(\builtin set +o posix
    \builtin enable -n
    \builtin enable declare printf ulimit
    \builtin printf '=fsize\n'
    \builtin ulimit -S -f
    \builtin printf '=files\n'
    \builtin ulimit -S -n
    \builtin printf '=functions\n'
    \builtin declare -F
    \builtin printf '=variables\n'
    \builtin declare -p)" "$@"
case $1 in *' __sessile_'*)
    case $1 in
    *$'\ndeclare -'?' __sessile_'* | *$'\ndeclare -'??' __sessile_'* | *$'\ndeclare -'???' __sessile_'* | \
        *$'\ndeclare -'????' __sessile_'* | *$'\ndeclare -'?????' __sessile_'* | *$'\ndeclare -'??????' __sessile_'*)
        # Every use of the prefix moves out of the way, this very test included.
        \builtin set -- "$(<"${BASH_SOURCE[0]}")" "$2" "$3" "${@:5}"
        \builtin eval "\\builtin shift
${1//__sessile_/__sessile_x_}"
        \builtin exit 1
        ;;
    esac
    ;;
esac

__sessile_listing=$1 __sessile_out=$2 __sessile_trap_text=$3 __sessile_builtin=$4
\builtin shift 4
__sessile_args=("$@")
\builtin set -- "$POSIXLY_CORRECT"
__sessile_flags=${1#*/} __sessile_flags=${__sessile_flags%%/*}
__sessile_shopts=${1#*/*/} __sessile_shopts=${__sessile_shopts%%/*}
__sessile_opts=${1#*/*/*/} __sessile_opts=${__sessile_opts%%/*}
__sessile_posix=${1#*/*/*/*/}
case $__sessile_posix in
# The user has the variable, so it still has the user's attributes.
=*) __sessile_posix_attrs=$(\builtin declare -p POSIXLY_CORRECT) ;;
esac
# Behind `builtin`, exec would undo its redirection; on failure the mode exits.
\exec >|"$__sessile_out"
\builtin set +o posix
# Leaving POSIX mode brings alias expansion back (5.1+).
\builtin shopt -u expand_aliases
\builtin shopt -u nocasematch
\builtin shopt -u extglob
\builtin shopt -u patsub_replacement
\builtin set -f

# ---- The listing, taken apart.
__sessile_ifs=${IFS-} __sessile_has_ifs=${IFS+1}
__sessile_lc=${LC_ALL-} __sessile_has_lc=${LC_ALL+1}
# What we change for ourselves is put back in the forks that print.
__sessile_own='case $__sessile_has_ifs in 1) \builtin declare IFS="$__sessile_ifs" ;; *) \builtin unset -v IFS ;; esac
    case $__sessile_has_lc in 1) \builtin declare LC_ALL="$__sessile_lc" ;; *) \builtin unset -v LC_ALL ;; esac'
# ulimit -f 0 kills whoever writes to a file; the soft limit is ours to lift.
\builtin ulimit -S -f hard
\builtin enable alias declare exit printf ulimit umask
# Byte-wise matching is all that the texts need, and linear on long values.
\builtin declare LC_ALL=C
if \builtin declare IFS=$'\n' && [[ $IFS == $'\n' ]]; then
    __sessile_lines=($__sessile_listing)
else
    # A readonly IFS, or an integer, does not split for us. Reading a pipe like
    # this is slow.
    \builtin mapfile -t __sessile_lines < <(\builtin printf '%s\n' "$__sessile_listing")
fi
__sessile_listing=

__sessile_section= __sessile_fsize= __sessile_files= __sessile_i=0
__sessile_disabled=() __sessile_funcs=() __sessile_attrs=()
for __sessile_line in "${__sessile_lines[@]}"; do
    ((++__sessile_i))
    case $__sessile_section$__sessile_line in
    =functions'declare -f'*)
        __sessile_n=${__sessile_line#declare -f}
        __sessile_funcs+=("${__sessile_n#* }") __sessile_attrs+=("${__sessile_n%% *}")
        ;;
    *=variables) \builtin break ;;
    =fsize | *=files | *=functions) __sessile_section=$__sessile_line ;;
    'enable -n '*) __sessile_disabled+=("${__sessile_line#enable -n }") ;;
    =fsize*) __sessile_fsize=$__sessile_line ;;
    =files*) __sessile_files=$__sessile_line ;;
    esac
done
__sessile_first=$__sessile_i

# ---- Texts, by name: printed one after another in a single fork, parted by a
# control character; one fork each only if a text contains that character.
__sessile_print='
    __sessile_texts=()
    if \builtin declare IFS=$'\''\036'\'' && [[ $IFS == $'\''\036'\'' ]]; then
        __sessile_texts=($(\builtin eval "$__sessile_own"
            for __sessile_n in "$@"; do
                \builtin declare "$__sessile_mode" -- "$__sessile_n"
                \builtin printf "\036"
            done))
    fi
    case ${#__sessile_texts[@]} in
    $#) ;;
    *)
        __sessile_texts=()
        for __sessile_n in "$@"; do
            __sessile_texts+=("$(\builtin eval "$__sessile_own"
                \builtin declare "$__sessile_mode" -- "$__sessile_n")")
        done
        ;;
    esac'

# Before 5.2 a value with a newline fills several lines, so that the listing
# gives only candidates for names.
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 502)); then
    __sessile_names=()
    for __sessile_line in "${__sessile_lines[@]:__sessile_first}"; do
        __sessile_n=${__sessile_line%%=*} __sessile_n=${__sessile_n##* }
        case $__sessile_n in '' | [0-9]* | *[!a-zA-Z0-9_]*) \builtin continue ;; esac
        case $__sessile_line in 'declare -'*) __sessile_names+=("$__sessile_n") ;; esac
    done
    __sessile_mode=-p
    \builtin set -- "${__sessile_names[@]}"
    \builtin eval "$__sessile_print"
    \builtin declare -A __sessile_seen
    __sessile_lines=() __sessile_first=0 __sessile_i=0
    for __sessile_n; do
        __sessile_line=${__sessile_texts[__sessile_i++]%$'\n'}
        case ${__sessile_seen[x$__sessile_n]}$__sessile_line in
        'declare -'*)
            __sessile_seen[x$__sessile_n]=1
            __sessile_lines+=("$__sessile_line")
            ;;
        esac
    done
fi

# ---- Variables. A declaration comes back in two steps, first value, then the
# attributes that would change it (-i evaluates, -l and -u fold) or forbid it.
# The plain ones as name, declaration, name, …; of the rest, what to report and
# what to restore.
__sessile_plain=() __sessile_env=() __sessile_var=() __sessile_set=() __sessile_lock=()
\builtin declare -A __sessile_rule
__sessile_rule=(
    # Facts about the process and not about its state, or computed when asked for.
    [BASH]=dynamic [BASHOPTS]=dynamic [BASHPID]=dynamic [BASH_ALIASES]=dynamic [BASH_ARGC]=dynamic
    [BASH_ARGV]=dynamic [BASH_ARGV0]=dynamic [BASH_CMDS]=dynamic [BASH_COMMAND]=dynamic
    [BASH_EXECUTION_STRING]=dynamic [BASH_LINENO]=dynamic [BASH_MONOSECONDS]=dynamic [BASH_SOURCE]=dynamic
    [BASH_SUBSHELL]=dynamic [BASH_TRAPSIG]=dynamic [BASH_VERSINFO]=dynamic [BASH_VERSION]=dynamic
    [COMP_WORDBREAKS]=dynamic [DIRSTACK]=dynamic [EPOCHREALTIME]=dynamic [EPOCHSECONDS]=dynamic [EUID]=dynamic
    [FUNCNAME]=dynamic [GROUPS]=dynamic [HISTCMD]=dynamic [LINENO]=dynamic [PIPESTATUS]=dynamic
    [POSIXLY_CORRECT]=dynamic [PPID]=dynamic [RANDOM]=dynamic [SECONDS]=dynamic [SHELLOPTS]=dynamic
    [SRANDOM]=dynamic [UID]=dynamic [_]=dynamic
    # The same in every fresh kernel: worth restoring, not worth reporting.
    [BASH_LOADABLES_PATH]=usual [COLUMNS]=usual [HOSTNAME]=usual [HOSTTYPE]=usual [LINES]=usual [MACHTYPE]=usual
    [OSTYPE]=usual [SHELL]=usual [TERM]=usual
    # The same, while they are as they were.
    [MAILCHECK]='declare -i MAILCHECK="60"' [OPTERR]='declare -- OPTERR="1"' [OPTIND]='declare -i OPTIND="1"'
    [OLDPWD]='declare -x OLDPWD' [HISTSIZE]='declare -- HISTSIZE="500"' [HISTFILESIZE]='declare -- HISTFILESIZE="500"'
    [IFS]="declare -- IFS=\$' \\t\\n'" [PS1]='declare -- PS1="\\s-\\v\\\$ "'
    [PS2]='declare -- PS2="> "' [PS4]='declare -- PS4="+ "'
)
for __sessile_line in "${__sessile_lines[@]:__sessile_first}"; do
    __sessile_n=${__sessile_line%%=*} __sessile_n=${__sessile_n##* }
    case $__sessile_n in
    [!a-zA-Z_]* | '') \builtin continue ;;
    # Whatever is not the user's has such a name.
    [A-Z_]*)
        __sessile_r=${__sessile_rule[$__sessile_n]}
        case $__sessile_r in dynamic) \builtin continue ;; esac
        ;;
    *)
        case $__sessile_line in 'declare -- '*)
            __sessile_plain+=("$__sessile_n" "$__sessile_line")
            \builtin continue
            ;;
        esac
        __sessile_r=
        ;;
    esac
    case $__sessile_line in 'declare -'*) ;; *) \builtin continue ;; esac
    __sessile_a=${__sessile_line:9:20} __sessile_a=${__sessile_a%% *}
    __sessile_kind=var
    case $__sessile_a in
    *[aAn]*) ;;
    *x*) case $__sessile_line in *=*) __sessile_kind=env ;; esac ;;
    esac
    case $__sessile_kind in
    env)
        case $__sessile_n in
        IFS) __sessile_v=$__sessile_ifs ;;
        LC_ALL) __sessile_v=$__sessile_lc ;;
        *) __sessile_v=${!__sessile_n} ;;
        esac
        __sessile_env+=("$__sessile_n" "$__sessile_v")
        case $__sessile_n in PWD | SHLVL) \builtin continue ;; esac
        ;;
    var)
        case $__sessile_n in PWD | SHLVL) \builtin continue ;; esac
        case $__sessile_r in
        usual | "$__sessile_line") ;;
        *) __sessile_var+=("$__sessile_n" "$__sessile_line") ;;
        esac
        ;;
    esac
    case $__sessile_a in
    - | x | a | A)
        __sessile_set+=("$__sessile_line")
        \builtin continue
        ;;
    esac
    __sessile_v=${__sessile_a//[!aAnx]/}
    __sessile_set+=("declare -${__sessile_v:--} ${__sessile_line#declare -* }")
    __sessile_v=${__sessile_a//[!cilntu]/}
    # An integer is no IFS that a kernel could come up with.
    case $__sessile_n:$__sessile_v in *: | *:n | IFS:*) ;; *) __sessile_set+=("declare -$__sessile_v $__sessile_n") ;; esac
    case $__sessile_a in *r*) __sessile_lock+=("\\builtin declare -${__sessile_a//[!nr]/} $__sessile_n") ;; esac
done
__sessile_lines=()
# Without anything to print, printf would print its format once.
case ${#__sessile_env[@]} in 0) ;; *) \builtin printf 'env\0%s\0%s\0' "${__sessile_env[@]}" ;; esac
case ${#__sessile_var[@]} in 0) ;; *) \builtin printf 'var\0%s\0%s\0' "${__sessile_var[@]}" ;; esac
case ${#__sessile_plain[@]} in 0) ;; *) \builtin printf 'var\0%s\0%s\0' "${__sessile_plain[@]}" ;; esac

# ---- Functions. Each is quoted as a whole, so that one which bash prints in a
# form that it cannot read costs only itself. A function called `builtin` would
# catch everything that follows it, so it comes last.
__sessile_last= __sessile_attr=() __sessile_texts=()
__sessile_mode=-f
case ${#__sessile_funcs[@]} in
0) ;;
*)
    \builtin set -- "${__sessile_funcs[@]}"
    \builtin eval "$__sessile_print"
    __sessile_texts=("${__sessile_texts[@]%$'\n'}")
    __sessile_var=() __sessile_i=0
    for __sessile_n; do
        __sessile_var+=("$__sessile_n" "${__sessile_texts[__sessile_i]}")
        __sessile_a=${__sessile_attrs[__sessile_i++]}
        case $__sessile_a in *[tx]*)
            \builtin printf -v __sessile_v '\\builtin declare -f%s -- %q' "${__sessile_a//r/}" "$__sessile_n"
            __sessile_attr+=("$__sessile_v")
            ;;
        esac
        case $__sessile_a in *r*)
            \builtin printf -v __sessile_v '\\builtin declare -fr -- %q' "$__sessile_n"
            __sessile_lock+=("$__sessile_v")
            ;;
        esac
    done
    \builtin printf 'func\0%s\0%s\0' "${__sessile_var[@]}"
    ;;
esac
case $__sessile_builtin in
?*)
    \builtin printf 'func\0builtin\0%s\0' "$__sessile_builtin"
    \builtin printf -v __sessile_last '\\builtin eval %q\n' "$__sessile_builtin"
    ;;
esac

# ---- Aliases, arguments, directories. The array of aliases is made anew each
# time that it is mentioned, always in the same order.
__sessile_alias=() __sessile_i=0
__sessile_values=("${BASH_ALIASES[@]}") __sessile_var=()
for __sessile_n in "${!BASH_ALIASES[@]}"; do
    __sessile_v=${__sessile_values[__sessile_i++]}
    __sessile_var+=("$__sessile_n" "$__sessile_v")
    __sessile_alias+=("$__sessile_n=$__sessile_v")
done
case $__sessile_i in 0) ;; *) \builtin printf 'alias\0%s\0%s\0' "${__sessile_var[@]}" ;; esac

__sessile_i=0 __sessile_var=()
for __sessile_n in "${__sessile_args[@]}"; do
    __sessile_var+=($((++__sessile_i)) "$__sessile_n")
done
case $__sessile_i in 0) ;; *) \builtin printf 'arg\0%s\0%s\0' "${__sessile_var[@]}" ;; esac

__sessile_cwd=$PWD
case $PWD in /*) [[ $PWD -ef . ]] ;; *) [[ '' ]] ;; esac ||
    __sessile_cwd=$(\builtin pwd -P) || __sessile_cwd=$PWD
\builtin printf 'cwd\0\0%s\0flags\0\0%s\0' "$__sessile_cwd" "$__sessile_flags"
\builtin printf -v __sessile_dirs '\\builtin cd -- %q\n\\builtin unset -v OLDPWD\n' "$__sessile_cwd"
for ((__sessile_i = ${#DIRSTACK[@]} - 1; __sessile_i > 0; __sessile_i--)); do
    \builtin printf -v __sessile_v '\\builtin pushd -n -- %q\n' "${DIRSTACK[__sessile_i]}"
    __sessile_dirs+=$__sessile_v
done

# ---- Options. Those that are on by default are tabled to tell what differs;
# the restore compares with the fresh kernel itself.
__sessile_off=":$__sessile_shopts:$__sessile_opts:"
for __sessile_n in braceexpand hashall interactive-comments checkwinsize cmdhist complete_fullquote expand_aliases \
    extquote force_fignore globasciiranges globskipdots hostcomplete interactive_comments patsub_replacement \
    progcomp promptvars sourcepath; do
    case $__sessile_off in
    *:$__sessile_n:*) __sessile_off=${__sessile_off/:$__sessile_n:/:} ;;
    *)
        # Older versions lack some, or have them off.
        case $((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 502)):$__sessile_n in
        1:checkwinsize | 1:complete_fullquote | 1:glob* | 1:patsub_replacement) ;;
        *) \builtin printf 'opt\0%s\0off\0' "$__sessile_n" ;;
        esac
        ;;
    esac
done
while
    __sessile_off=${__sessile_off#:}
    __sessile_n=${__sessile_off%%:*}
    [[ $__sessile_n ]]
do
    # POSIX mode and BASH_COMPAT imply these, and BASHOPTS does not always tell.
    case :$__sessile_opts:$__sessile_n in
    *:posix:*inherit_errexit | *:posix:*shift_verbose | *:compat[0-9]*) ;;
    *) \builtin printf 'opt\0%s\0on\0' "$__sessile_n" ;;
    esac
    __sessile_off=${__sessile_off#"$__sessile_n"}
done

# Turned on at the end, when nothing is left to be parsed or expanded by them.
# POSIX mode goes first because it sets others; restricted, noexec and onecmd
# would leave a kernel that takes no further command.
__sessile_on=
case :$__sessile_opts: in *:posix:*) __sessile_on=$'\\builtin set -o posix\n' ;; esac
case $__sessile_posix in =*)
    __sessile_a=${__sessile_posix_attrs#declare } __sessile_a=${__sessile_a%% *}
    \builtin printf -v __sessile_v '\\builtin declare %s POSIXLY_CORRECT=%q\n' "$__sessile_a" "${__sessile_posix#=}"
    __sessile_on+=$__sessile_v
    case POSIXLY_CORRECT$__sessile_a in *-*x*)
        \builtin printf 'env\0POSIXLY_CORRECT\0%s\0' "${__sessile_posix#=}"
        ;;
    *) \builtin printf 'var\0POSIXLY_CORRECT\0declare %s POSIXLY_CORRECT=%q\0' "$__sessile_a" "${__sessile_posix#=}" ;;
    esac
    ;;
esac
case :$__sessile_shopts: in *:extglob:*) ;; *) __sessile_on+=$'\\builtin shopt -u extglob\n' ;; esac
__sessile_v=:$__sessile_shopts
while
    __sessile_v=${__sessile_v#:}
    __sessile_n=${__sessile_v%%:*}
    [[ $__sessile_n ]]
do
    __sessile_v=${__sessile_v#"$__sessile_n"}
    case $__sessile_n in login_shell | restricted_shell) ;; *) __sessile_on+="\\builtin shopt -s $__sessile_n"$'\n' ;; esac
done
__sessile_v=:$__sessile_opts __sessile_errexit=
while
    __sessile_v=${__sessile_v#:}
    __sessile_n=${__sessile_v%%:*}
    [[ $__sessile_n ]]
do
    __sessile_v=${__sessile_v#"$__sessile_n"}
    case $__sessile_n in
    posix | noexec | onecmd | privileged | restricted) ;;
    errexit) __sessile_errexit=$'\\builtin set -o errexit\n' ;;
    # Typed, they would take the next line from a terminal; sourced, they do not.
    emacs | vi) __sessile_on+="\\builtin . /dev/stdin <<<'\\builtin set -o $__sessile_n'"$'\n' ;;
    *) __sessile_on+="\\builtin set -o $__sessile_n"$'\n' ;;
    esac
done

# ---- Traps. The listing is made of shell words, four an item. DEBUG is the
# very last thing restored: it would run for each further command.
\builtin eval "__sessile_words=($__sessile_trap_text)"
__sessile_traps= __sessile_debug=
for ((__sessile_i = 0; __sessile_i + 3 < ${#__sessile_words[@]}; __sessile_i += 4)); do
    __sessile_v=${__sessile_words[__sessile_i + 2]} __sessile_n=${__sessile_words[__sessile_i + 3]#SIG}
    # `-` is how POSIX mode lists a signal without a trap; the other is the keeper's.
    case $__sessile_v in - | *__sessile''_exit*) \builtin continue ;; esac
    \builtin printf 'trap\0%s\0%s\0' "$__sessile_n" "$__sessile_v"
    \builtin printf -v __sessile_v '\\builtin trap -- %q %s\n' "$__sessile_v" "$__sessile_n"
    case $__sessile_n in DEBUG) __sessile_debug=$__sessile_v ;; *) __sessile_traps+=$__sessile_v ;; esac
done

# ---- Umask and limits print themselves: no need to hold them in variables.
\builtin printf 'umask\0\0'
\builtin umask
\builtin printf '\0'
for __sessile_n in c d e f i l m n q r R s t u v x; do
    case $__sessile_n in
    f) __sessile_v=$__sessile_fsize$'\n' ;;
    # 5.1 brought -R; an unknown flag prints nothing.
    *) __sessile_v= ;;
    esac
    \builtin printf 'ulimit\0-%s\0%s' "$__sessile_n" "$__sessile_v"
    case $__sessile_n in f) ;; *) \builtin ulimit -S -"$__sessile_n" ;; esac
    \builtin ulimit -H -"$__sessile_n"
    \builtin printf '\0'
done

# ---- The restore text. First empty the fresh kernel (a variable would keep its
# export attribute), then bring things back, what could disturb the rest last.
# Unsetting the dynamic variables would take their meaning from them for good,
# and unsetting BASH_XTRACEFD closes a descriptor.
\builtin printf 'restore\0\0%s' '\builtin shopt -u expand_aliases
\builtin shopt -s extglob
\builtin set -f
for __sessile_n in $(\builtin declare -F); do
    case $__sessile_n in declare | -*) ;; *) \builtin unset -f -- "$__sessile_n" ;; esac
done
'
\builtin printf '__sessile_o=:%s:\n' "$__sessile_shopts:extglob"
\builtin printf '%s' 'for __sessile_n in ${BASHOPTS//:/ }; do
    case $__sessile_o in *:$__sessile_n:*) ;; *) \builtin shopt -u "$__sessile_n" ;; esac
done
'
\builtin printf '__sessile_o=:%s:\n' "$__sessile_opts:noglob"
\builtin printf '%s' 'for __sessile_n in ${SHELLOPTS//:/ }; do
    case $__sessile_o in *:$__sessile_n:*) ;; *) \builtin set +o "$__sessile_n" ;; esac
done
'
\builtin printf '%s' 'for __sessile_n in'
\builtin printf ' ${!%s@}' {A..Z} {a..z} _
\builtin printf '%s' '; do
    case $__sessile_n in
    __sessile_* | BASH | BASH_XTRACEFD | BASHOPTS | BASHPID | BASH_ALIASES | BASH_ARG* | BASH_CMDS | BASH_COMMAND | BASH_EXECUTION_STRING | \
        BASH_LINENO | BASH_MONOSECONDS | BASH_SOURCE | BASH_SUBSHELL | BASH_TRAPSIG | BASH_VERS* | COMP_WORDBREAKS | \
        DIRSTACK | EPOCH* | EUID | FUNCNAME | GROUPS | HISTCMD | LINENO | PIPESTATUS | PPID | PWD | RANDOM | SECONDS | SHELLOPTS | SHLVL | SRANDOM | UID | _) ;;
    *) \builtin unset -v "$__sessile_n" ;;
    esac
done
\builtin unset -v __sessile_n __sessile_o
'
\builtin printf '%s' "$__sessile_dirs"
# Before there is any function; apart, because bash does not quote all of it.
__sessile_v=$(\builtin complete -p)
case $__sessile_v in '') ;; *) \builtin printf '\\builtin eval %q\n' "$__sessile_v" ;; esac
case ${#__sessile_plain[@]} in 0) ;; *) \builtin printf '%.0s%s\n' "${__sessile_plain[@]}" ;; esac
\builtin printf '%s\n' "${__sessile_set[@]}"
case ${#__sessile_alias[@]} in 0) ;; *) \builtin printf '\\builtin alias -- %q\n' "${__sessile_alias[@]}" ;; esac
case ${#__sessile_texts[@]} in 0) ;; *) \builtin printf '\\builtin eval %q\n' "${__sessile_texts[@]}" ;; esac
\builtin printf '%s\n' "${__sessile_attr[@]}"
\builtin printf '\\builtin set --'
case ${#__sessile_args[@]} in 0) ;; *) \builtin printf ' %q' "${__sessile_args[@]}" ;; esac
\builtin printf '\n\\builtin umask '
\builtin umask
for __sessile_n in c d e i l m n q r R s t u v x; do
    # Fewer files leave no room for a run (see ROOM).
    case $__sessile_n/$__sessile_files in n/[0-9] | n/1[0-9]) \builtin continue ;; esac
    \builtin printf '\n\\builtin ulimit -S -%s ' "$__sessile_n"
    \builtin ulimit -S -"$__sessile_n"
    \builtin printf '\n\\builtin ulimit -H -%s ' "$__sessile_n"
    \builtin ulimit -H -"$__sessile_n"
done
\builtin printf '\n\\builtin ulimit -S -f %s\n\\builtin ulimit -H -f ' "$__sessile_fsize"
\builtin ulimit -H -f
for __sessile_n in "${__sessile_disabled[@]}"; do
    \builtin printf '\n\\builtin enable -n -- %q' "$__sessile_n"
done
case :$__sessile_opts: in *:noglob:*) ;; *) \builtin printf '\n\\builtin set +f' ;; esac
\builtin printf '\n%s' "${__sessile_lock[@]}" "$__sessile_on" "$__sessile_traps" "$__sessile_last" "$__sessile_errexit" "$__sessile_debug"
\builtin printf '\0end\0\0%s\0' 1
\builtin exit 0

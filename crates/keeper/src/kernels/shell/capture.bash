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
# - Our variables are called __sessile_*. If the user has such names (they might
#   be readonly), this file runs under a longer prefix instead.
# - What a fresh kernel reads back was printed by bash for that purpose
#   (declare -p, %q) or is fixed text, so no value can end a restore half-way.
# It must not be sourced in the user's shell itself: it wrecks its own options.

# No reserved word before aliases are off: `if` may be one.
\set +e +u +k +v +x +a +E +T +C
\trap - DEBUG ERR RETURN EXIT
\export -f builtin && \set -- "$1" "$2" "$(\unset -f declare; \declare -f builtin)" "${@:3}" || \set -- "$1" "$2" '' "${@:3}"
\unset -f builtin || \exit 1
\builtin shopt -u expand_aliases
case ${!__sessile_@} in
?*)
    # Every use of the prefix moves out of the way, this very test included.
    \builtin set -- "$(<"${BASH_SOURCE[0]}")" "$1" "$2" "${@:4}"
    \builtin eval "\\builtin shift
${1//__sessile_/__sessile_x_}"
    \builtin exit 1
    ;;
esac

__sessile_out=$1 __sessile_trap_text=$2 __sessile_builtin=$3
\builtin shift 3
__sessile_args=("$@")
\builtin set -- "$POSIXLY_CORRECT"
__sessile_flags=${1#*/} __sessile_flags=${__sessile_flags%%/*}
__sessile_shopts=${1#*/*/} __sessile_shopts=${__sessile_shopts%%/*}
__sessile_opts=${1#*/*/*/} __sessile_opts=${__sessile_opts%%/*}
__sessile_posix=${1#*/*/*/*/}
case $__sessile_posix in
=*)
    # The user has the variable: only its attributes are still in place.
    \builtin set -- "$(\builtin declare -p POSIXLY_CORRECT)"
    __sessile_posix=${1%%POSIXLY_CORRECT*}POSIXLY_CORRECT$__sessile_posix
    ;;
esac
\builtin set +o posix
# Leaving POSIX mode brings alias expansion back (5.1+).
\builtin shopt -u expand_aliases
\builtin shopt -u nocasematch
\builtin shopt -u extglob
\builtin shopt -u patsub_replacement
\builtin set -f
# ulimit -f 0 kills whoever writes to a file; the soft limit is ours to lift,
# but the listing has to tell the old one.
__sessile_limit='\builtin ulimit -S -f hard'
\builtin exec >|"$__sessile_out" || \builtin exit 1

# ---- One listing: a line an item.
__sessile_ifs=${IFS-} __sessile_has_ifs=${IFS+1}
__sessile_lc=${LC_ALL-}
__sessile_own_ifs='case $__sessile_has_ifs in 1) \builtin declare IFS="$__sessile_ifs" ;; *) \builtin unset -v IFS ;; esac'
__sessile_list='\builtin eval "$__sessile_own_ifs"
    \builtin printf "=fsize\n"
    \builtin ulimit -S -f
    \builtin printf "=disabled\n"
    \builtin enable -n
    \builtin enable declare printf
    \builtin printf "=functions\n"
    \builtin declare -F
    \builtin printf "=variables\n"
    \builtin declare -p'
if \builtin declare IFS=$'\n'; then
    __sessile_lines=($(\builtin eval "$__sessile_list"))
else
    # A readonly IFS does not split for us. Reading a pipe like this is slow.
    \builtin mapfile -t __sessile_lines < <(\builtin eval "$__sessile_list")
fi
\builtin ulimit -S -f hard
\builtin enable alias declare exit printf ulimit umask
# Byte-wise matching is all that the texts need, and linear on long values.
\builtin declare LC_ALL=C

__sessile_section= __sessile_fsize=
__sessile_disabled=() __sessile_funcs=() __sessile_attrs=() __sessile_names=() __sessile_decls=()
for __sessile_line in "${__sessile_lines[@]}"; do
    case $__sessile_section$__sessile_line in
    =variables'declare -'*)
        __sessile_n=${__sessile_line#declare -* } __sessile_n=${__sessile_n%%=*}
        case $__sessile_n in
        '' | [0-9]* | *[!a-zA-Z0-9_]* | __sessile_*) ;;
        *) __sessile_names+=("$__sessile_n") __sessile_decls+=("$__sessile_line") ;;
        esac
        ;;
    =functions'declare -f'*)
        __sessile_n=${__sessile_line#declare -f}
        __sessile_funcs+=("${__sessile_n#* }") __sessile_attrs+=("${__sessile_n%% *}")
        ;;
    =variables*) ;;
    *=functions | *=disabled | =fsize | *=variables) __sessile_section=$__sessile_line ;;
    =disabled*) __sessile_disabled+=("${__sessile_line#enable -n }") ;;
    =fsize*) __sessile_fsize=$__sessile_line ;;
    esac
done

# ---- Texts, by name: printed one after another in a single fork, parted by a
# control character; one fork each only if a text contains that character.
__sessile_texts=
__sessile_print='
    __sessile_texts=()
    if \builtin declare IFS=$'\''\036'\''; then
        __sessile_texts=($(\builtin eval "$__sessile_own_ifs"
            for __sessile_n in "$@"; do
                \builtin declare $__sessile_mode -- "$__sessile_n"
                \builtin printf "\036"
            done))
    fi
    case ${#__sessile_texts[@]} in
    $#) ;;
    *)
        __sessile_texts=()
        for __sessile_n in "$@"; do
            __sessile_texts+=("$(\builtin eval "$__sessile_own_ifs"
                \builtin declare $__sessile_mode -- "$__sessile_n")")
        done
        ;;
    esac'

# Before 5.2 a value with a newline fills several lines, so that the listing
# gives only candidates for names.
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 502)); then
    __sessile_mode=-p
    \builtin set -- "${__sessile_names[@]}"
    \builtin eval "$__sessile_print"
    \builtin declare -A __sessile_seen
    __sessile_names=() __sessile_decls=()
    for __sessile_i in "${!__sessile_texts[@]}"; do
        \builtin shift "$((__sessile_i > 0))"
        case ${__sessile_seen[x$1]}${__sessile_texts[__sessile_i]} in
        'declare -'*)
            __sessile_seen[x$1]=1
            __sessile_names+=("$1") __sessile_decls+=("${__sessile_texts[__sessile_i]%$'\n'}")
            ;;
        esac
    done
fi

# ---- Records, and the parts of the restore text.
__sessile_cwd=$PWD
case $PWD in /*) [[ $PWD -ef . ]] ;; *) [[ '' ]] ;; esac ||
    __sessile_cwd=$(\builtin pwd -P) || __sessile_cwd=$PWD
\builtin printf 'cwd\0\0%s\0flags\0\0%s\0' "$__sessile_cwd" "$__sessile_flags"

__sessile_set= __sessile_keep=' ' __sessile_readonly=
for __sessile_i in "${!__sessile_names[@]}"; do
    __sessile_n=${__sessile_names[__sessile_i]}
    __sessile_line=${__sessile_decls[__sessile_i]}
    __sessile_a=${__sessile_line:9:20} __sessile_a=${__sessile_a%% *}
    case $__sessile_a in *[aA]*) __sessile_kind=var ;; *x*) __sessile_kind=env ;; *) __sessile_kind=var ;; esac
    case $__sessile_line in *=*) ;; *) __sessile_kind=var ;; esac
    case $__sessile_n in IFS) __sessile_v=$__sessile_ifs ;; LC_ALL) __sessile_v=$__sessile_lc ;; *) __sessile_v=${!__sessile_n-} ;; esac
    case $__sessile_n in
    # Dynamic, or a fact about the process and not about its state.
    BASH | BASHOPTS | BASHPID | BASH_ALIASES | BASH_ARG[CV] | BASH_ARGV0 | BASH_CMDS | BASH_COMMAND | \
        BASH_EXECUTION_STRING | BASH_LINENO | BASH_MONOSECONDS | BASH_SOURCE | BASH_SUBSHELL | BASH_TRAPSIG | \
        BASH_VERSINFO | BASH_VERSION | COMP_WORDBREAKS | DIRSTACK | EPOCHREALTIME | EPOCHSECONDS | EUID | \
        FUNCNAME | GROUPS | HISTCMD | LINENO | PIPESTATUS | POSIXLY_CORRECT | PPID | RANDOM | SECONDS | \
        SHELLOPTS | SRANDOM | UID | _)
        continue
        ;;
    PWD | SHLVL)
        case $__sessile_kind in env) \builtin printf 'env\0%s\0%s\0' "$__sessile_n" "$__sessile_v" ;; esac
        continue
        ;;
    esac
    case $__sessile_kind$__sessile_line in
    env*) \builtin printf 'env\0%s\0%s\0' "$__sessile_n" "$__sessile_v" ;;
    # As a fresh kernel has them: restored, but no news.
    var'declare -'[!\ ]' '@(BASH_LOADABLES_PATH|COLUMNS|HOSTNAME|HOSTTYPE|LINES|MACHTYPE|OSTYPE|SHELL|TERM)=*) ;;
    esac
done

# Writes the state of a live POSIX sh (dash above all) to stdout: records for the
# keeper, among them a script that brings the state back in a fresh kernel.
#
# Called   . capture   in a forked subshell that has the user's positional
#          parameters; stdin gives the text of `trap`, ended by that of `times`
#          (a subshell has no traps left, and a FIFO that its reader also holds
#          open for writing has no end). @DIR@ stands for the kernel's private
#          directory: the keeper puts its path there when it installs this file.
#          Its file `names`, if there is one, has names of functions that a run
#          may have defined, a line each.
# Writes   KIND NUL NAME NUL VALUE NUL …; the last record is `end`. A stream
#          without it is incomplete and worth nothing.
#
# Invariants
# - Nothing of the user's runs: special builtins come before functions, functions
#   over the others are unset (in this fork), words are quoted against aliases,
#   and aliases of reserved words are put aside before the first one is used.
#   (Those of `{`, `}` and `!` need not be: this file does without them.)
# - No external command and no PATH; a fork for each listing, and two for each
#   alias with a quote or a newline in it.
# - Time in proportion to the state, as far as dash lets us (it finds a variable
#   in time proportional to their number, so that each mention of one counts):
#   what grows does so in large pieces, and what the shell has quoted already
#   in a listing is not quoted again.
# - Every value that goes into the restore text is quoted by the shell itself:
#   `alias NAME` prints NAME='…'.
# It cannot list functions: dash has no way to. It says which of `names` are
# functions now (with an empty value: the keeper has the source), and the record
# `lost` says that there may be others. A readonly variable with one of our names, or a readonly IFS, ends it early.
# It must not be sourced in the user's shell itself.

__sessile_opts=$(\set +o) __sessile_flags=$-
\set +e +u +v +x +a +C
\set -f
__sessile_command=$(\unset -f type; \type command)
\unset -f command
__sessile_fsize=$(\command ulimit -S -f) __sessile_files=$(\command ulimit -S -n)
# ulimit -f 0 kills whoever writes to a file; the soft limit is ours to lift.
\command ulimit -S -f "$(\command ulimit -H -f)"
# Tells below how this shell quotes; among the exports, the shortest listing
# that everything has.
\export __sessile_probe="it's"
__sessile_vars=$(\set)
__sessile_exports=$(\export -p)
__sessile_readonlys=$(\readonly -p)
__sessile_aliases=$(\command alias)
\command alias 'case' >/dev/null && __sessile_word_case=$(\command alias 'case') && \command unalias 'case'
\command alias 'do' >/dev/null && __sessile_word_do=$(\command alias 'do') && \command unalias 'do'
\command alias 'done' >/dev/null && __sessile_word_done=$(\command alias 'done') && \command unalias 'done'
\command alias 'elif' >/dev/null && __sessile_word_elif=$(\command alias 'elif') && \command unalias 'elif'
\command alias 'else' >/dev/null && __sessile_word_else=$(\command alias 'else') && \command unalias 'else'
\command alias 'esac' >/dev/null && __sessile_word_esac=$(\command alias 'esac') && \command unalias 'esac'
\command alias 'fi' >/dev/null && __sessile_word_fi=$(\command alias 'fi') && \command unalias 'fi'
\command alias 'for' >/dev/null && __sessile_word_for=$(\command alias 'for') && \command unalias 'for'
\command alias 'if' >/dev/null && __sessile_word_if=$(\command alias 'if') && \command unalias 'if'
\command alias 'in' >/dev/null && __sessile_word_in=$(\command alias 'in') && \command unalias 'in'
\command alias 'then' >/dev/null && __sessile_word_then=$(\command alias 'then') && \command unalias 'then'
\command alias 'until' >/dev/null && __sessile_word_until=$(\command alias 'until') && \command unalias 'until'
\command alias 'while' >/dev/null && __sessile_word_while=$(\command alias 'while') && \command unalias 'while'

# ---- Functions. Aliases come before them in what `command -V` tells.
__sessile_functions=$(
    \command unalias -a
    while IFS= \command read -r __sessile_n; do
        \command -V "$__sessile_n"
    done <'@DIR@/names'
)
\unset -f alias break cd continue printf pwd read ulimit umask unalias

# ---- How listings are read. dash and its kin quote every value: in '…', and a
# run of quotes in "…". So a line that has just two quotes, one behind its first
# `=` and one at its end, is a whole item and cannot be the inside of another
# value. Any other line gives only a candidate for a name; what is not one, or
# came before, is passed over.
__sessile_nl='
'
case $__sessile_exports in
*"__sessile_probe='it'\"'\"'s'"*) __sessile_quotes=1 ;;
*) __sessile_quotes= ;;
esac
__sessile_user_ifs=${IFS-} __sessile_has_ifs=${IFS+1}
IFS=$__sessile_nl
for __sessile_line in $__sessile_functions; do
    case $__sessile_line in
    *' is a shell function') __sessile_n=${__sessile_line% is a shell function} ;;
    *' is a function') __sessile_n=${__sessile_line% is a function} ;;
    # Ours by now; this is what it was.
    'command is '*) case $__sessile_command in *' function'*) __sessile_n=command ;; *) \continue ;; esac ;;
    *) \continue ;;
    esac
    \command printf 'func\0%s\0\0' "$__sessile_n"
done

# ---- Aliases, by name.
__sessile_seen=' ' __sessile_restore_aliases= __sessile_piece=
for __sessile_line in $__sessile_aliases; do
    # bash in its POSIX mode prints a whole command.
    __sessile_line=${__sessile_line#alias }
    case $__sessile_line in
    *\'*\'*\'* | *=*=\'*) ;;
    ?*=\'*\')
        __sessile_v=${__sessile_line#*=?}
        \command printf 'alias\0%s\0%s\0' "${__sessile_line%%=*}" "${__sessile_v%?}"
        __sessile_piece="${__sessile_piece}__sessile_q='${__sessile_line%%=*}=$__sessile_v$__sessile_nl"'\command alias "$__sessile_q"'"$__sessile_nl"
        case ${#__sessile_piece} in ????*)
            __sessile_restore_aliases=$__sessile_restore_aliases$__sessile_piece __sessile_piece=
            ;;
        esac
        \continue
        ;;
    esac
    case $__sessile_line in *=*) ;; *) \continue ;; esac
    __sessile_n=${__sessile_line%%=*}
    case $__sessile_seen in *" $__sessile_n "*) \continue ;; esac
    __sessile_t=
    case $__sessile_n in
    case | do | done | elif | else | esac | fi | for | if | in | then | until | while)
        \eval "__sessile_t=\${__sessile_word_$__sessile_n-}"
        ;;
    *) __sessile_t=$(\command alias "$__sessile_n") || \continue ;;
    esac
    __sessile_t=${__sessile_t#alias }
    case $__sessile_t in
    '') \continue ;;
    # Had a line of its own.
    *"$__sessile_nl"* | *\'*\'*\'* | *=*=\'*) ;;
    *=\'*\') \continue ;;
    esac
    __sessile_seen="$__sessile_seen$__sessile_n "
    \eval "__sessile_v=${__sessile_t#*=}"
    \command printf 'alias\0%s\0%s\0' "$__sessile_n" "$__sessile_v"
    \command unalias __sessile_q 2>/dev/null
    \command alias "__sessile_q=$__sessile_n=$__sessile_v"
    __sessile_t=$(\command alias __sessile_q)
    __sessile_piece="$__sessile_piece${__sessile_t#alias }$__sessile_nl"'\command alias "$__sessile_q"'"$__sessile_nl"
done
__sessile_restore_aliases=$__sessile_restore_aliases$__sessile_piece
\command unalias -a

# ---- What stdin has to say about traps.
__sessile_trap_text=
while IFS= \command read -r __sessile_line; do
    case $__sessile_line in [0-9]*m[0-9]*s\ [0-9]*m[0-9]*s) \break ;; esac
    __sessile_trap_text=$__sessile_trap_text$__sessile_line$__sessile_nl
done
\exec </dev/null

__sessile_i=0
for __sessile_v; do
    __sessile_i=$((__sessile_i + 1))
    \command printf 'arg\0%s\0%s\0' "$__sessile_i" "$__sessile_v"
done
__sessile_cwd=$(\command pwd && \command printf x)
case $__sessile_cwd in *"${__sessile_nl}x") __sessile_cwd=${__sessile_cwd%"${__sessile_nl}x"} ;; *) __sessile_cwd=$PWD ;; esac
\command printf 'cwd\0\0%s\0flags\0\0%s\0' "$__sessile_cwd" "$__sessile_flags"
\command printf 'lost\0functions\0this shell cannot list its functions; those defined elsewhere than in the text of a run are not known\0'

# ---- Variables, by name.
__sessile_export_names=' ' __sessile_readonly_names=' ' __sessile_piece=
for __sessile_line in $__sessile_exports; do
    case $__sessile_line in
    # Ours are there under `set -a`.
    'export '__sessile_* | 'export _='*) ;;
    'export '[a-zA-Z_]*)
        __sessile_n=${__sessile_line#export }
        __sessile_piece="$__sessile_piece${__sessile_n%%=*} "
        case ${#__sessile_piece} in ????*)
            __sessile_export_names=$__sessile_export_names$__sessile_piece __sessile_piece=
            ;;
        esac
        ;;
    esac
done
__sessile_export_names=$__sessile_export_names$__sessile_piece __sessile_piece=
for __sessile_line in $__sessile_readonlys; do
    case $__sessile_line in 'readonly '[a-zA-Z_]*)
        __sessile_n=${__sessile_line#readonly }
        __sessile_piece="$__sessile_piece${__sessile_n%%=*} "
        case ${#__sessile_piece} in ????*)
            __sessile_readonly_names=$__sessile_readonly_names$__sessile_piece __sessile_piece=
            ;;
        esac
        ;;
    esac
done
__sessile_readonly_names=$__sessile_readonly_names$__sessile_piece
# To look a name up in a list takes as long as the list is: many names are
# marked by variables instead.
__sessile_exported=$__sessile_export_names
case ${#__sessile_exported} in ????*)
    IFS=' '
    for __sessile_n in $__sessile_export_names; do
        \eval "__sessile_export_of_$__sessile_n=1"
    done
    IFS=$__sessile_nl
    __sessile_exported=many
    ;;
esac

# Most have a whole line, and go out just as they are listed (name, line, name,
# …); the rest by name.
__sessile_plain= __sessile_piece= __sessile_names= __sessile_seen=' '
for __sessile_line in $__sessile_vars; do
    case $__sessile_line in
    [!a-zA-Z_]* | __sessile_* | _=* | PPID=* | LINENO=*) \continue ;;
    *\'*\'*\'*) ;;
    # Perhaps one that every kernel has.
    [A-Z]*=\'*\')
        __sessile_names="$__sessile_names${__sessile_line%%=*} "
        \continue
        ;;
    *=\'*\')
        case $__sessile_exported in
        many) \eval "__sessile_t=\${__sessile_export_of_${__sessile_line%%=*}-}" ;;
        *" ${__sessile_line%%=*} "*) __sessile_t=1 ;;
        *) __sessile_t= ;;
        esac
        case $__sessile_t in
        1) __sessile_names="$__sessile_names${__sessile_line%%=*} " ;;
        *)
            __sessile_piece="$__sessile_piece${__sessile_line%%=*}
$__sessile_line
"
            case ${#__sessile_piece} in ????*)
                __sessile_plain=$__sessile_plain$__sessile_piece __sessile_piece=
                ;;
            esac
            ;;
        esac
        \continue
        ;;
    *=*) ;;
    *) \continue ;;
    esac
    __sessile_n=${__sessile_line%%=*}
    case $__sessile_quotes$__sessile_line in [a-zA-Z_]*=* | 1*=\'*) ;; *) \continue ;; esac
    case $__sessile_n in *[!a-zA-Z0-9_]*) \continue ;; esac
    case $__sessile_seen in *" $__sessile_n "*) \continue ;; esac
    case $__sessile_n in
    IFS)
        case $__sessile_has_ifs in '') \continue ;; esac
        __sessile_v=$__sessile_user_ifs
        ;;
    *)
        \eval "__sessile_t=\${$__sessile_n+1} __sessile_v=\${$__sessile_n-}"
        case $__sessile_t in '') \continue ;; esac
        ;;
    esac
    case $__sessile_quotes$__sessile_v in
    # Has a line of its own elsewhere.
    1*\'* | 1*"$__sessile_nl"*) ;;
    1*) \continue ;;
    esac
    __sessile_seen="$__sessile_seen$__sessile_n "
    __sessile_names="$__sessile_names$__sessile_n "
done
__sessile_plain=$__sessile_plain$__sessile_piece
case $__sessile_plain in ?*) \command printf 'var\0%s\0%s\n\0' $__sessile_plain ;; esac
IFS=' '
for __sessile_n in $__sessile_names; do
    \eval "__sessile_v=\$$__sessile_n"
    case $__sessile_n in IFS) __sessile_v=$__sessile_user_ifs ;; esac
    case $__sessile_exported in
    many) \eval "__sessile_t=\${__sessile_export_of_$__sessile_n-}" ;;
    *" $__sessile_n "*) __sessile_t=1 ;;
    *) __sessile_t= ;;
    esac
    case $__sessile_t in
    1)
        \command printf 'env\0%s\0%s\0' "$__sessile_n" "$__sessile_v"
        \continue
        ;;
    esac
    case $__sessile_n=$__sessile_v in
    # As every fresh kernel has them: worth restoring, not worth reporting.
    PWD=* | OLDPWD=* | "IFS= 	$__sessile_nl" | OPTIND=1 | 'PS1=# ' | 'PS1=$ ' | 'PS2=> ' | 'PS4=+ ') ;;
    *)
        \command printf 'var\0%s\0' "$__sessile_n"
        \command alias "$__sessile_n=$__sessile_v"
        \command alias "$__sessile_n"
        \command unalias "$__sessile_n"
        \command printf '\0'
        ;;
    esac
done

# ---- Options: `set +o` prints commands.
IFS=$__sessile_nl
__sessile_set= __sessile_errexit=
for __sessile_line in $__sessile_opts; do
    __sessile_n=${__sessile_line#set ?o }
    case $__sessile_line in
    # Facts about the process, or what would leave it deaf to further commands.
    *interactive | *stdin | *noexec | *privileged | *debug | *nolog | *onecmd | *restricted) \continue ;;
    *-o\ errexit) __sessile_errexit='\command set -o errexit' ;;
    *) __sessile_set="$__sessile_set\\command $__sessile_line$__sessile_nl" ;;
    esac
    case $__sessile_line in
    'set -o braceexpand' | 'set -o hashall' | 'set -o interactive-comments' | 'set -o posix') ;;
    'set -o '*) \command printf 'opt\0%s\0on\0' "$__sessile_n" ;;
    esac
done

# ---- Limits and mask print themselves.
\command printf 'umask\0\0'
\command umask
\command printf '\0'
for __sessile_n in c d f l m n p r s t v w; do
    \command printf 'ulimit\0-%s\0' "$__sessile_n"
    # The names are dash's (p is for processes); an unknown one prints nothing.
    case $__sessile_n in f) \command printf '%s\n' "$__sessile_fsize" ;; *) \command ulimit -S -"$__sessile_n" ;; esac
    \command ulimit -H -"$__sessile_n"
    \command printf '\0'
done

# ---- Traps. The listing consists of trap commands: with that word as an alias
# it calls us instead, whatever lines a command spans. As everywhere below,
# `alias` does the quoting.
__sessile_restore_traps=
__sessile_trap() case $2 in
*__sessile_exit*) ;;
*)
    \command printf 'trap\0%s\0%s\0' "$3" "$2"
    \command unalias trap
    \command alias "__sessile_q=$2"
    __sessile_t=$(\command alias __sessile_q)
    \command alias trap=__sessile_trap
    __sessile_restore_traps="$__sessile_restore_traps${__sessile_t#alias }$__sessile_nl"'\command trap -- "$__sessile_q" '"$3$__sessile_nl"
    ;;
esac
\command alias trap=__sessile_trap
\eval "$__sessile_trap_text"
\command unalias -a

# ---- The restore text: empty the fresh kernel, bring things back, what could
# disturb the rest last. Behind `command` the failure of a special builtin does
# not end the whole.
IFS=' '
\command printf 'restore\0\0%s' '\set -f
\unset -v __sessile_l
IFS="
"
for __sessile_l in $(\set); do
    case $__sessile_l in [a-zA-Z_]*=*) ;; *) continue ;; esac
    __sessile_l=${__sessile_l%%=*}
    case $__sessile_l in *[!a-zA-Z0-9_]* | IFS | PWD | PPID | _ | __sessile_l | LINENO | OPTIND) continue ;; esac
    \unset -v "$__sessile_l"
done
\unset -v __sessile_l
'
\command alias "__sessile_q=$__sessile_cwd"
\command alias __sessile_q
\command printf '%s\n' '\command cd -- "$__sessile_q"' '\unset -v OLDPWD'
\command unalias __sessile_q
IFS=$__sessile_nl
case $__sessile_plain in ?*) \command printf '%.0s%s\n' $__sessile_plain ;; esac
IFS=' '
for __sessile_n in $__sessile_names; do
    case $__sessile_n in PWD) \continue ;; esac
    \eval "__sessile_v=\$$__sessile_n"
    case $__sessile_n in IFS) __sessile_v=$__sessile_user_ifs ;; esac
    \command alias "$__sessile_n=$__sessile_v"
    \command alias "$__sessile_n"
    \command unalias "$__sessile_n"
done
case $__sessile_has_ifs in '') \command printf '\\unset -v IFS\n' ;; esac
for __sessile_n in $__sessile_export_names; do
    \command printf '\\command export %s\n' "$__sessile_n"
done
\command printf '\\set --\n'
for __sessile_v; do
    \command alias "__sessile_q=$__sessile_v"
    \command alias __sessile_q
    \command printf '%s\n' '\set -- "$@" "$__sessile_q"'
done
\command printf '%s' "$__sessile_restore_aliases" "$__sessile_restore_traps" '\unset -v __sessile_q
\command umask '
\command umask
for __sessile_n in c d l m n p r s t v w; do
    # Fewer files leave no room for a run (see ROOM).
    case $__sessile_n/$__sessile_files in n/[0-9] | n/1[0-9]) \continue ;; esac
    \command printf '\\command ulimit -S -%s ' "$__sessile_n"
    \command ulimit -S -"$__sessile_n" || \command printf '\n'
    \command printf '\\command ulimit -H -%s ' "$__sessile_n"
    \command ulimit -H -"$__sessile_n" || \command printf '\n'
done
\command printf '\\command ulimit -S -f %s\n\\command ulimit -H -f %s\n' "$__sessile_fsize" "$(\command ulimit -H -f)"
for __sessile_n in $__sessile_readonly_names; do
    \command printf '\\command readonly %s\n' "$__sessile_n"
done
\command printf '%s' "$__sessile_set"
case $__sessile_errexit in ?*) \command printf '%s\n' "$__sessile_errexit" ;; esac
\command printf '\0end\0\0001\0'
\exit 0

# Empties a fresh kernel: a variable that is set again would keep its export
# attribute.
\set -f
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

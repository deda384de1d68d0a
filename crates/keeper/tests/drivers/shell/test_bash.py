"""What a captured bash says of itself, and what a fresh one becomes from it."""

import os
import random
import unittest

from harness import Bash, Kernel, assert_cost_is_linear

BASH = Bash()
EVERY_BYTE = bytes(range(1, 256))

# Facts about the process, not its state; `shopt -p` tells more truly than BASHOPTS.
PROCESS = (
    "BASHOPTS BASHPID BASH_ARGC BASH_ARGV BASH_COMMAND BASH_LINENO BASH_SOURCE BASH_SUBSHELL COMP_WORDBREAKS "
    "EPOCHREALTIME EPOCHSECONDS FUNCNAME HISTCMD LINENO PIPESTATUS PPID RANDOM SECONDS SRANDOM _"
).split()


def dump(kernel):
    """All that bash can list of itself: the capture script has no part in it."""
    text = kernel.run(
        r"""\builtin declare -p; \builtin declare -f; \builtin declare -F; \builtin alias -p; \builtin trap -p
\builtin shopt -p; \builtin set +o; \builtin umask; \builtin ulimit -a; \builtin ulimit -Ha; \builtin pwd
\builtin dirs -l; \builtin printf '<%s>\n' "$@"; \builtin enable -n
"""
    ).decode("latin-1")
    kept = []
    for line in text.split("\n"):
        words = line.split(" ", 2)
        if words[0] == "declare" and len(words) == 3 and words[2].split("=")[0] in PROCESS:
            continue
        kept.append(line)
    return sorted(kept)


def script(state):
    # BASHOPTS lags behind what POSIX mode and BASH_COMPAT turn on.
    lags = ("inherit_errexit", "shift_verbose", "compat42", "__sessile_o=:")
    return [x for x in state.lines() if not any(o in x for o in lags)]


def quote(data):
    return b"$'" + b"".join(b"\\%03o" % b for b in data) + b"'"


class BashCase(unittest.TestCase):
    maxDiff = 4000

    def kernel(self, shell=BASH, **kw):
        kernel = Kernel(shell, **kw)
        self.addCleanup(kernel.close)
        return kernel

    def reborn(self, text, **kw):
        """A kernel that ran `text`, its state, and a fresh kernel restored from it."""
        old = self.kernel(**kw)
        old.run(text)
        state = old.capture()
        new = self.kernel(env=old.env, cwd=old.cwd)
        new.restore(state)
        return old, state, new

    def assert_twins(self, text, **kw):
        """The fresh kernel lists the same as the old one, and captures the same."""
        old, state, new = self.reborn(text, **kw)
        again = new.capture()
        self.assertEqual(state.view, again.view)
        self.assertEqual(script(state), script(again))
        self.assertEqual(dump(old), dump(new))
        return state, new


class AStateSays(BashCase):
    def test_a_fresh_kernel_has_nothing_to_tell_but_its_environment(self):
        with Kernel(BASH) as k:
            view = k.capture().view
        self.assertEqual({n for n, v in view.items() if v}, {"shell", "env_vars", "working_dir", "umask", "limits"})

    def test_each_kind_of_state_has_its_record(self):
        k = self.kernel()
        k.run(
            """cd /usr; x='a b'; export E=1; declare -a arr=(1 "2 3"); f() { echo hi; }; alias ll='ls -l'
            set -o pipefail; shopt -s nullglob; shopt -u cmdhist; trap 'echo bye' EXIT; trap '' INT; umask 027
            ulimit -S -n 100; set -- one 'two three'"""
        )
        r = k.capture()
        self.assertEqual(r.cwd, "/usr")
        self.assertEqual(r.of("env")["E"], "1")
        self.assertEqual(r.of("var"), {"x": "a b", "arr": '([0]="1" [1]="2 3")'})
        self.assertEqual(r.functions, {"f"})
        self.assertEqual(r.of("alias"), {"ll": "ls -l"})
        self.assertEqual(r.of("opt"), {"pipefail": "on", "nullglob": "on", "cmdhist": "off"})
        self.assertEqual(r.of("trap"), {"EXIT": "echo bye", "INT": ""})
        self.assertEqual(r.view["umask"], "0027")
        self.assertEqual(r.of("ulimit")["-n"].split()[0], "100")
        self.assertEqual(r.arguments, ["one", "two three"])

    def test_the_keepers_own_exit_trap_is_not_the_users(self):
        k = self.kernel()
        k.run("trap ': __sessile_exit' EXIT; trap 'echo u' USR1")
        self.assertEqual(k.capture().of("trap"), {"USR1": "echo u"})


class AFreshKernelGets(BashCase):
    def test_variables_with_every_attribute(self):
        self.assert_twins(
            r"""declare -i n=5; declare -i unset_int; declare -r ro=1; declare -a a=(1 2 [7]=x) e=(); declare -A m=([k]=v [a b]=c) em=() um
            declare -n ref=n; declare -n dangling; declare -l low=ABC; declare -u up=abc; declare -x ex=1; export exnv; declare -t tr=1
            declare -ir ri=3; declare -ar ra=(1); declare -rx rx=1; declare -ax ax=(1); odd='1+'; declare -i odd; Fold=ABC; declare -l Fold
            declare -ai ia=(1 2); declare -A m2=(['x]y']=1 ['$(z)']=2 ['q"q']=3 [$'n\nl']=4 [é]=5 ['@']=6)"""
        )

    def test_values_with_newlines_quotes_and_unicode(self):
        self.assert_twins(
            r"""a=$'line\nline\n\n'; b="it's \"q\" \$(x) \`y\` \\ !"; c='é 日本 🦀'; d=; e=$'\e[1m'; f=$'a\ndeclare -x FAKE="1"\nb'
            export g=$'x\ny'; h=(a$'\n'b '' "c d")"""
        )

    def test_every_byte_in_values_keys_and_arguments_whatever_the_locale(self):
        q = quote(EVERY_BYTE)
        text = b"x=" + q + b"; export E=" + q + b"; a=(" + q + b"); declare -A m=([" + q + b"]=" + q + b"); set -- " + q
        text += b"; alias al=" + q + b"; trap " + q + b" USR1\n"
        for locale in ({"LC_ALL": "C"}, {"LC_ALL": "C.UTF-8"}, {}):
            with self.subTest(locale):
                r, new = self.assert_twins(text, env={"PATH": os.environ["PATH"], **locale})
                self.assertEqual(new.run(r'\builtin printf "%s" "$x"'), EVERY_BYTE)

    def test_values_of_a_megabyte(self):
        r, _ = self.assert_twins(
            r"""big=$(yes $'é"\n$x' | head -c 1000000); huge=$(yes é | tr -d '\n' | head -c 200000); export huge
            arr=("$big" "$big"); eval "f() { : '$big'; }" """
        )
        self.assertEqual(len(r.of("env")["huge"].encode()), 200000)

    def test_the_environment_less_what_was_unset(self):
        env = {"PATH": os.environ["PATH"], "GONE": "1", "CHANGED": "old", "HIDDEN": "h", "BASH_ENV": "/none", "WITH.DOT": "1"}
        _, _, new = self.reborn("unset GONE BASH_ENV OPTERR PS4; CHANGED=new; declare +x HIDDEN; export ADDED=1", env=env)
        self.assertEqual(
            new.run("/usr/bin/env | /usr/bin/grep -v -e ^_= -e ^PATH= -e ^PWD= -e ^SHLVL= | /usr/bin/sort; echo $HIDDEN ${PS4-none} ${OPTERR-none}"),
            b"ADDED=1\nCHANGED=new\nWITH.DOT=1\nh none none\n",
        )

    def test_functions_of_any_form(self):
        self.assert_twins(
            r"""shopt -s extglob; f() { cat <<'X'
raw $text
X
}
            g() ( exit 3 ); h() { case $1 in @(a|b)) echo ab;; !(c)) echo notc;; esac; } >/dev/null
            dash-ed() { :; }; é() { echo é; }; a.b() { echo "$(cat <<<"x")"; }; function if { :; }; @x() { [[ $1 =~ ^a\ b$ ]]; }
            exported() { local -i n=1; for ((;;)); do break; done; coproc X { :; }; }; export -f exported; declare -ft f; readonly -f g
            bytes() { echo $'\x01' "a" '\'; }; nested() { inner() { echo "\$x \`y\`"; }; inner; }
            shopt -u extglob"""
        )

    def test_a_function_with_control_characters_in_its_text(self):
        text = b"f() { printf %s '" + EVERY_BYTE.replace(b"'", b"") + b"'; }; g() { :; }\n"
        r, new = self.assert_twins(text)
        self.assertEqual(new.run("f"), EVERY_BYTE.replace(b"'", b""))

    def test_functions_as_written_though_an_alias_would_change_them(self):
        _, new = self.assert_twins("f() { g one; }; g() { echo \"$@\"; }; alias g='echo aliased' if=echo for=x '{=}' declare=echo builtin=echo '-x=y'")
        self.assertEqual(new.run("f"), b"one\n")

    def test_options_that_would_break_the_restoring(self):
        self.assert_twins("f() { echo \"$1\"; }; a=(1); set -u -f -x -v -C -k -a -E -T -P +B +h; shopt -s nocasematch nullglob failglob extdebug")

    def test_errexit_and_goes_on(self):
        _, _, new = self.reborn("set -e; x=1")
        self.assertEqual(new.run("echo $x; [[ $- == *e* ]]; echo $?"), b"1\n0\n")

    def test_posix_mode(self):
        self.assert_twins("f() { :; }; set -o posix; x=1")
        self.assert_twins("export POSIXLY_CORRECT=yes; x=1")

    def test_traps(self):
        self.assert_twins(
            r"""trap 'echo "it'\''s
            over"' EXIT; trap '' INT QUIT; trap 'x=$((x+1))' USR1; trap 'e=$?' ERR; trap ': debug' DEBUG; trap ': ret' RETURN; trap 'r' RTMIN+3"""
        )

    def test_traps_that_do_not_run_while_they_are_restored(self):
        _, r, new = self.reborn("trap 'd=$((d+1))' DEBUG; trap 'r=$((r+1))' RETURN; trap 'e=$((e+1))' ERR")
        self.assertEqual(new.capture().of("var"), r.of("var"))

    def test_directories(self):
        old, r, new = self.reborn("mkdir 'a b' $'n\\nl'; cd 'a b'; pushd ../$'n\\nl'; pushd /usr; ln -s /usr ../x 2>/dev/null; cd /; ln -s /usr \"$OLDPWD/../$$\" 2>/dev/null; cd /usr/lib")
        self.assertEqual(dump(old), dump(new))
        self.assertEqual(new.run("cd - >/dev/null; pwd"), b"/\n")

    def test_the_logical_directory_behind_a_link(self):
        _, r, new = self.reborn("ln -s /usr link; cd link")
        self.assertEqual(new.run("pwd"), r.cwd.encode() + b"\n")
        self.assertTrue(r.cwd.endswith("/link"))

    def test_all_but_the_directory_if_that_is_gone(self):
        _, r, new = self.reborn('mkdir gone; cd gone; rmdir ../gone; x=1')
        self.assertTrue(r.cwd.endswith("/gone"))
        self.assertEqual(new.run("echo $x"), b"1\n")

    def test_the_directory_though_PWD_lies(self):
        _, r, new = self.reborn("cd /usr; PWD=/nowhere")
        self.assertEqual(new.run("pwd -P"), b"/usr\n")

    def test_umask_limits_arguments_and_getopts(self):
        _, new = self.assert_twins("umask 077; ulimit -S -n 64; ulimit -H -c 100; ulimit -S -t 500; set -- a '' $'x\\ny'; getopts ab o -a -b; shift 0")
        self.assertEqual(new.run("getopts ab o -a -b; echo $o"), b"b\n")

    def test_a_file_size_limit(self):
        _, r, new = self.reborn("x=1; ulimit -S -f 64")
        self.assertEqual(r.of("ulimit")["-f"].split()[0], "64")
        self.assertEqual(new.capture().of("ulimit")["-f"].split()[0], "64")

    def test_disabled_builtins(self):
        self.assert_twins("enable -n test printf alias [; x=1")


class HostileState(BashCase):
    BUILTINS = (
        "alias break cd command compgen continue declare dirs echo enable eval exec exit export false local mapfile "
        "popd printf pushd pwd read readonly return set shift shopt source test trap true type typeset ulimit umask unalias unset : . ["
    )

    def test_functions_over_every_builtin_are_captured_and_not_called(self):
        text = "".join("function %s { called+=' %s'; }\n" % (n, n) for n in self.BUILTINS.split())
        _, new = self.assert_twins("x=1\n" + text)
        self.assertEqual(new.run(r'echo; \builtin printf %s "$x$called"'), b"1 echo")

    def test_a_function_called_builtin(self):
        class Other(Bash):
            prefix = "\\command "

        old = self.kernel(shell=Other())
        old.run("x=1; builtin() { hit=1; }; declare() { hit=1; }")
        r = old.capture()
        self.assertEqual(r.functions, {"builtin", "declare"})
        new = self.kernel(shell=Other())
        new.restore(r)
        again = new.capture()
        self.assertEqual(again.view, {**r.view, "working_dir": again.cwd})
        self.assertNotIn("hit", again.of("var"))

    def test_aliases_over_reserved_words(self):
        words = "if then else fi for while until do done case esac in { } ! [[ time function select coproc builtin trap exit set . : unset export shopt".split()
        self.assert_twins("x=1; alias " + " ".join("'%s=:'" % w for w in words))

    def test_every_strict_option_at_once(self):
        self.assert_twins("x=1; set -uxvkCfaETP -o pipefail; BASH_XTRACEFD=1")

    def test_a_strange_or_missing_or_readonly_IFS(self):
        for text in ("IFS=", "IFS=abcdef=:/", "unset IFS", "readonly IFS", "IFS=e; readonly IFS", "export IFS"):
            with self.subTest(text):
                self.assert_twins("y=(1 2); f() { echo \"$@\"; }; set -- a b; " + text)

    def test_variables_that_look_like_ours(self):
        self.assert_twins("readonly __sessile_out=1 __sessile_n=2 __sessile_x_n=3 __sessile_line; __sessile_f() { :; }")

    def test_readonly_locale_and_path(self):
        self.assert_twins("readonly LC_ALL=C PATH OPTIND=2 PS1 BASH_ENV; export LC_ALL")

    def test_no_path(self):
        self.assert_twins("unset PATH; x=1")
        self.assert_twins("PATH=; x=1")

    def test_a_debug_trap_that_prints_into_everything(self):
        self.assert_twins("set -T; trap 'echo debug; echo debug >&2' DEBUG; x=1")

    def test_shell_options_that_change_matching(self):
        self.assert_twins("X=1; x=2; shopt -s nocasematch nocaseglob extglob dotglob failglob globstar xpg_echo; shopt -u patsub_replacement")

    def test_a_compatibility_level(self):
        self.assert_twins("BASH_COMPAT=4.2; a=(1); declare -A m=([a]=b)")


class TheCapturedShell(BashCase):
    def test_is_not_disturbed(self):
        k = self.kernel()
        k.run("trap 'echo x' USR1; set -- 1 2; x=1; sleep 100 & first=$!")
        before = dump(k)
        listing = k.run("jobs; echo $first $!")
        for _ in range(3):
            k.capture()
        self.assertEqual(dump(k), before)
        self.assertEqual(k.run("jobs; echo $first $!"), listing)


class AtTheExit(BashCase):
    def ends(self, text):
        k = self.kernel()
        return k.exit_with(text)

    def test_exit_leaves_its_status_and_the_state(self):
        status, r = self.ends("x=1; f() { :; }; cd /usr; exit 3")
        self.assertEqual((status, r.of("var").get("x"), r.cwd), (3, "1", "/usr"))
        self.assertEqual(r.of("trap"), {})

    def test_errexit_and_nounset_too(self):
        self.assertEqual(self.ends("x=1; set -e; false; x=2")[0], 1)
        status, r = self.ends("x=1; set -euo pipefail; : $nope; x=2")
        self.assertEqual((status, r.of("var")["x"]), (1, "1"))

    def test_the_end_of_input_and_a_syntax_error_in_eval(self):
        status, r = self.ends("x=1; set -o posix; set -e; eval 'if'; x=2")
        self.assertEqual(r.of("var")["x"], "1")


class TheCost(BashCase):
    def test_grows_with_the_state_and_not_with_its_square(self):
        items = ("v{0}={0}", "export v{0}={0}", "f{0}() {{ :; }}", "alias a{0}=b")
        assert_cost_is_linear(self, BASH, items)


class RandomStates(BashCase):
    """Any state that these pieces make comes back, with the same seeds each time."""

    OPTS = "allexport errtrace functrace hashall keyword noclobber noglob nounset pipefail physical posix braceexpand".split()
    SHOPTS = "autocd cdable_vars checkhash dotglob extglob globstar nocaseglob nocasematch nullglob lastpipe xpg_echo sourcepath cmdhist gnu_errfmt".split()

    def state(self, rng):
        def value():
            pool = rng.choice((EVERY_BYTE, b"\n'\"$`\\ \t!*?[](){}=:#~&|;<>", "aé日🦀 \n".encode()))
            if rng.random() < 0.3:
                return "".join(rng.choice("aé日🦀 \n") for _ in range(rng.randrange(20))).encode()
            return bytes(rng.choice(pool) for _ in range(rng.randrange(40)))

        lines = []
        for i in range(rng.randrange(12)):
            n = b"v%d" % i
            kind = rng.randrange(5)
            if kind == 0:
                lines.append(b"declare -%s %s=%s" % (rng.choice((b"-", b"x", b"r", b"l", b"u", b"t", b"rx")), n, quote(value())))
            elif kind == 1:
                items = b" ".join(b"[%d]=%s" % (rng.randrange(1000), quote(value())) for _ in range(rng.randrange(5)))
                lines.append(b"declare -%s %s=(%s)" % (rng.choice((b"a", b"ar", b"ax")), n, items))
            elif kind == 2:
                items = b" ".join(b"[%s]=%s" % (quote(b"k" + value()), quote(value())) for _ in range(rng.randrange(5)))
                lines.append(b"declare -A %s=(%s)" % (n, items))
            elif kind == 3:
                lines.append(b"declare -i %s=%d" % (n, rng.randrange(-5, 5)))
            else:
                lines.append(b"export %s=%s" % (n, quote(value())))
        for i in range(rng.randrange(4)):
            lines.append(b"alias a%d=%s" % (i, quote(value())))
            lines.append(b"f%d() { local x=%s; echo \"$x\" $1; }" % (i, quote(value())))
        for sig in rng.sample(["EXIT", "USR1", "INT", "ERR", "DEBUG"], rng.randrange(4)):
            lines.append(b"trap %s %s" % (rng.choice((b"''", b"': x'", b"': '" + quote(b"'" + value().replace(b"\n", b"")))), sig.encode()))
        lines.append(b"set -- " + b" ".join(quote(value()) for _ in range(rng.randrange(4))))
        lines.append(b"umask %03o" % rng.randrange(0o100))
        for o in rng.sample(self.SHOPTS, rng.randrange(6)):
            lines.append(b"shopt -%s %s" % (rng.choice((b"s", b"u")), o.encode()))
        for o in rng.sample(self.OPTS, rng.randrange(5)):
            lines.append(b"set %so %s" % (rng.choice((b"-", b"+")), o.encode()))
        return b"\n".join(lines) + b"\n"

    def test_come_back_as_they_were(self):
        for seed in range(40):
            with self.subTest(seed=seed):
                text = self.state(random.Random(seed))
                try:
                    self.assert_twins(text)
                finally:
                    self.doCleanups()


if __name__ == "__main__":
    unittest.main()

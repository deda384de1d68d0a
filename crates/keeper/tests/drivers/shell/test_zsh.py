"""What a captured zsh says of itself, and what a fresh one becomes from it."""

import os
import random
import unittest

from harness import Kernel, Zsh, assert_cost_is_linear

ZSH = Zsh()
EVERY_BYTE = bytes(range(1, 256))
# zsh itself lists some bytes in a way that can be read as others, where they are no text.
CLEAR_BYTES = bytes(set(range(1, 0xf4)) - {0xdc})

# Facts about the process, not its state.
PROCESS = (
    "RANDOM SECONDS _ TTY TTYIDLE ZSH_EVAL_CONTEXT zsh_eval_context status pipestatus EPOCHSECONDS EPOCHREALTIME "
    "LINENO HISTCMD 0 argv COLUMNS LINES TRY_BLOCK_ERROR TRY_BLOCK_INTERRUPT"
).split()


def dump(kernel):
    """All that zsh can list of itself: the capture script has no part in it."""
    text = kernel.run(
        r"""\builtin typeset -p; \builtin typeset -f; \builtin alias -L; \builtin trap; \builtin umask
\builtin ulimit -a; \builtin ulimit -Ha; \builtin pwd; \builtin dirs -lv; \builtin printf '<%s>\n' "$@"; \builtin set -o; \builtin hash -d
"""
    ).decode("latin-1")
    kept = []
    for line in text.split("\n"):
        words = [w for w in line.split(" ") if not w.startswith("-")]
        # Without a value: the arrays of a module, once it is loaded.
        if words[0] == "typeset" and ("=" not in line or words[1].split("=")[0] in PROCESS):
            continue
        kept.append(line)
    return sorted(kept)


def quote(data):
    return b"$'" + b"".join(b"\\%03o" % b for b in data) + b"'"


class ZshCase(unittest.TestCase):
    maxDiff = 4000

    def kernel(self, **kw):
        kernel = Kernel(ZSH, **kw)
        self.addCleanup(kernel.close)
        return kernel

    def reborn(self, text, **kw):
        old = self.kernel(**kw)
        old.run(text)
        state = old.capture()
        new = self.kernel(env=old.env, cwd=old.cwd)
        new.restore(state)
        return old, state, new

    def assert_twins(self, text, **kw):
        old, state, new = self.reborn(text, **kw)
        again = new.capture()
        self.assertEqual(state.view, again.view)
        self.assertEqual(state.lines(), again.lines())
        self.assertEqual(dump(old), dump(new))
        return state, new


class AStateSays(ZshCase):
    def test_a_fresh_kernel_has_nothing_to_tell_but_its_environment(self):
        view = self.kernel().capture().view
        self.assertEqual({n for n, v in view.items() if v}, {"shell", "env_vars", "working_dir", "umask", "limits"})

    def test_each_kind_of_state_has_its_record(self):
        k = self.kernel()
        k.run(
            """cd /usr; x='a b'; export E=1; arr=(1 "2 3"); f() { echo hi }; alias ll='ls -l'; alias -g GG='| wc'; alias -s txt=cat
            setopt pipefail nullglob nobeep; trap 'echo bye' EXIT; trap '' INT; TRAPUSR1() { echo u }; umask 027
            ulimit -S -n 100; set -- one 'two three'"""
        )
        r = k.capture()
        self.assertEqual(r.cwd, "/usr")
        self.assertEqual(r.of("env")["E"], "1")
        self.assertEqual(r.of("var"), {"x": "a b", "arr": "( 1 '2 3' )"})
        self.assertEqual(r.functions, {"f", "TRAPUSR1"})
        self.assertEqual(r.of("alias"), {"ll": "ls -l", "-g GG": "| wc", "-s txt": "cat"})
        self.assertEqual(r.of("opt"), {"pipefail": "on", "nullglob": "on", "beep": "off"})
        self.assertEqual(r.of("trap"), {"EXIT": "echo bye", "INT": ""})
        self.assertEqual(r.view["umask"], "027")
        self.assertEqual(r.of("ulimit")["-n"].split()[0], "100")
        self.assertEqual(r.arguments, ["one", "two three"])

    def test_the_keepers_own_exit_trap_is_not_the_users(self):
        k = self.kernel()
        k.run("trap ': __sessile_exit' EXIT; trap 'echo u' USR1")
        self.assertEqual(k.capture().of("trap"), {"USR1": "echo u"})


class AFreshKernelGets(ZshCase):
    def test_variables_with_every_attribute(self):
        self.assert_twins(
            r"""typeset -i n=5; typeset -i 16 hex=255; typeset -F 3 fl=1.5; typeset -E ex=1e9; typeset -r ro=1; a=(1 2 '' 'x y'); e=()
            typeset -A m=(k v 'a b' c '' empty 'x]y' 1) em; typeset -l low=ABC; typeset -u up=abc; export E=1; typeset -Z 3 z=7; typeset -L 4 l=abcdef
            typeset -U un=(a b a); typeset -T FOO foo=(a b); typeset -T BAR bar +; bar=(x y); typeset -rx rx=1; typeset -ar ra=(1)
            typeset -U path; typeset -t tr=1"""
        )

    def test_values_with_newlines_quotes_and_unicode(self):
        self.assert_twins(r"""a=$'line\nline\n\n'; b="it's \"q\" \$(x) \`y\` \\ !"; c='é 日本 🦀'; d=; f=$'a\nexport FAKE=1\nb'; export g=$'x\ny'""")

    def test_every_byte_whatever_the_locale(self):
        q = quote(EVERY_BYTE)
        text = b"x=" + q + b"; export E=" + q + b"; a=(" + q + b"); typeset -A m=(" + q + b" " + q + b"); set -- " + q
        text += b"; aliases[al]=" + q + b"; trap -- " + quote(b": '" + EVERY_BYTE[31:126].replace(b"'", b"") + "é日".encode() + b"'") + b" USR1\n"
        for locale in ({"LC_ALL": "C"}, {"LC_ALL": "C.UTF-8"}, {}):
            with self.subTest(locale):
                r, new = self.assert_twins(text, env={"PATH": os.environ["PATH"], **locale})
                self.assertEqual(new.run(r'\builtin printf "%s" "$x"'), EVERY_BYTE)

    def test_values_of_a_megabyte(self):
        self.assert_twins(
            r"""big=$(yes $'é"\n$x' | head -c 1000000); huge=$(yes é | tr -d '\n' | head -c 200000); export huge; arr=("$big")"""
        )

    def test_the_environment_less_what_was_unset(self):
        env = {"PATH": os.environ["PATH"], "GONE": "1", "CHANGED": "old", "HIDDEN": "h", "WITH.DOT": "1"}
        _, _, new = self.reborn("unset GONE WORDCHARS; CHANGED=new; typeset +x HIDDEN; export ADDED=1", env=env)
        self.assertEqual(
            new.run("/usr/bin/env | /usr/bin/grep -v -e ^_= -e ^PATH= -e PWD= -e ^SHLVL= -e ^HOME= -e ^LOGNAME= | /usr/bin/sort; echo $HIDDEN ${WORDCHARS-none}"),
            b"ADDED=1\nCHANGED=new\nWITH.DOT=1\nh none\n",
        )

    def test_functions_of_any_form(self):
        self.assert_twins(
            r"""f() { cat <<'X'
raw $text
X
}
            g() ( exit 3 ); h() { case $1 in (a|b)) echo ab;; *) [[ $1 == (x|y)* ]] && print ${(j:,:)@};; esac }
            dash-ed() { : }; é() { echo é }; a.b() { echo "$(cat <<<"x")" }; function n1 n2 { repeat 2 echo x }; 'odd name'() { : }
            autoload -U lazy; nested() { inner() { echo "\$x \`y\`" }; inner; () { echo anon $1 } x }"""
        )

    def test_a_function_with_a_redirection_of_its_own(self):
        _, _, new = self.reborn("f() { echo $1 } >&2")
        self.assertEqual(new.run("f x 2>/dev/null; f y"), b"y\n")

    def test_functions_as_written_though_an_alias_would_change_them(self):
        _, new = self.assert_twins("f() { g one }; g() { echo \"$@\" }; alias g='echo aliased' if=echo for=x '{=}' typeset=echo; alias -g one=two")
        self.assertEqual(new.run("f"), b"one\n")

    def test_options_that_would_break_the_restoring(self):
        self.assert_twins(
            'f() { echo "$1" }; a=(1); setopt nounset noglob xtrace verbose noclobber allexport ksharrays shwordsplit ksh_typeset '
            "ignorebraces globsubst nullglob cshjunkiequotes posixbuiltins posixidentifiers rcexpandparam warncreateglobal nomultibyte noexec"
        )

    def test_the_options_of_an_emulation(self):
        for text in ("emulate sh; x=1; f() { echo $1; }", "emulate ksh; x=1; a=(1 2)"):
            _, r, new = self.reborn(text)
            self.assertEqual(r.view, new.capture().view)

    def test_errexit_and_goes_on(self):
        _, _, new = self.reborn("set -e; x=1")
        self.assertEqual(new.run("echo $x; [[ -o errexit ]]; echo $?"), b"1\n0\n")

    def test_trap_functions_that_a_fork_drops(self):
        self.assert_twins(
            r"""TRAPINT() { if true; then return 1; fi }; TRAPZERR() { e=$? }; TRAPUSR1() { echo u }; TRAPEXIT() { : }
            TRAPQUIT() {
                cat <<'END'
a }
END
            }; trap 'echo h' HUP"""
        )

    def test_traps(self):
        self.assert_twins(
            r"""trap 'echo "it'\''s
            over"' EXIT; trap '' INT QUIT; trap 'x=$((x+1))' USR1; trap 'e=$?' ZERR; trap ': debug' DEBUG; TRAPUSR2() { echo two; trap -- x HUP }"""
        )

    def test_directories(self):
        old, _, new = self.reborn("mkdir 'a b'; cd 'a b'; pushd /; pushd /usr; cd /usr/lib; hash -d nm=/usr/share")
        self.assertEqual(dump(old), dump(new))
        self.assertEqual(new.run("cd - >/dev/null; pwd; echo ~nm"), b"/usr\n/usr/share\n")

    def test_all_but_the_directory_if_that_is_gone(self):
        _, r, new = self.reborn("mkdir gone; cd gone; rmdir ../gone; x=1")
        self.assertTrue(r.cwd.endswith("/gone"))
        self.assertEqual(new.run("echo $x"), b"1\n")

    def test_umask_limits_arguments_and_modules(self):
        _, new = self.assert_twins("umask 077; ulimit -S -n 64; ulimit -H -c 100; set -- a '' $'x\\ny'; zmodload zsh/mathfunc; zmodload zsh/datetime")
        self.assertEqual(new.run("echo $(( int(sqrt(16)) ))"), b"4\n")

    def test_a_file_size_limit(self):
        _, r, new = self.reborn("x=1; ulimit -S -f 64")
        self.assertEqual(r.of("ulimit")["-f"].split()[0], "64")
        self.assertEqual(new.capture().of("ulimit")["-f"].split()[0], "64")


class HostileState(ZshCase):
    BUILTINS = (
        "alias autoload break cd command continue declare dirs echo emulate eval exec exit export false local "
        "popd print printf pushd pwd read readonly return set setopt shift source test trap true typeset ulimit umask unalias unset unsetopt zmodload : . ["
    )

    def test_functions_over_every_builtin_are_captured_and_not_called(self):
        text = "".join("functions[%s]='called+=\" %s\"'\n" % (n, n) for n in self.BUILTINS.split())
        _, new = self.assert_twins("x=1\n" + text)
        self.assertEqual(new.run(r'echo; \builtin printf %s "$x$called"'), b"1 echo")

    def test_aliases_over_reserved_words(self):
        words = "if then else fi for while until do done case esac in { } ! [[ time function select builtin trap exit set . : unset export setopt".split()
        self.assert_twins("x=1\n" + "".join("aliases[%s]=:\n" % w for w in words))

    def test_a_strange_or_missing_or_readonly_IFS(self):
        for text in ("IFS=", "IFS=abcdef=:/trp", "unset IFS", "readonly IFS", "export IFS"):
            with self.subTest(text):
                self.assert_twins('y=(1 2); f() { echo "$@" }; trap "echo t" USR1; set -- a b; ' + text)

    def test_no_path(self):
        self.assert_twins("unset PATH; x=1")
        self.assert_twins("PATH=; x=1")

    def test_a_debug_trap_that_prints_into_everything(self):
        self.assert_twins("trap 'echo debug; echo debug >&2' DEBUG; x=1")


class TheCapturedShell(ZshCase):
    def test_is_not_disturbed(self):
        k = self.kernel()
        k.run("trap 'echo x' USR1; set -- 1 2; x=1; sleep 100 & first=$!")
        before = dump(k)
        listing = k.run("jobs; echo $first $!")
        for _ in range(3):
            k.capture()
        self.assertEqual(dump(k), before)
        self.assertEqual(k.run("jobs; echo $first $!"), listing)


class AtTheExit(ZshCase):
    def test_exit_leaves_its_status_and_the_state(self):
        status, r = self.kernel().exit_with("x=1; f() { local y=2; exit 3 }; cd /usr; f")
        self.assertEqual((status, r.of("var"), r.cwd), (3, {"x": "1"}, "/usr"))
        self.assertEqual(r.of("trap"), {})

    def test_errexit_too(self):
        status, r = self.kernel().exit_with("x=1; set -e; false; x=2")
        self.assertEqual((status, r.of("var")["x"]), (1, "1"))


class TheCost(ZshCase):
    def test_grows_with_the_state_and_not_with_its_square(self):
        items = ("v{0}={0}", "export v{0}={0}", "f{0}() {{ :; }}", "alias a{0}=b")
        assert_cost_is_linear(self, ZSH, items)


class RandomStates(ZshCase):
    """Any state that these pieces make comes back, with the same seeds each time."""

    OPTS = (
        "allexport noclobber noglob nounset pipefail ksharrays shwordsplit globsubst nullglob extendedglob nobeep nocaseglob "
        "nomatch globdots autocd nobgnice rcquotes posixtraps"
    ).split()

    def state(self, rng):
        def value():
            if rng.random() < 0.3:
                return "".join(rng.choice("aé日🦀 \n") for _ in range(rng.randrange(20))).encode()
            pool = rng.choice((CLEAR_BYTES, b"\n'\"$`\\ \t!*?[](){}=:#~&|;<>"))
            return bytes(rng.choice(pool) for _ in range(rng.randrange(40)))

        lines = []
        for i in range(rng.randrange(12)):
            n = b"v%d" % i
            kind = rng.randrange(4)
            if kind == 0:
                lines.append(b"typeset %s %s=%s" % (rng.choice((b"-g", b"-x", b"-r", b"-l", b"-u", b"-rx")), n, quote(value())))
            elif kind == 1:
                lines.append(b"%s=(%s)" % (n, b" ".join(quote(value()) for _ in range(rng.randrange(5)))))
            elif kind == 2:
                items = b" ".join(quote(value()) + b" " + quote(value()) for _ in range(rng.randrange(5)))
                lines.append(b"typeset -A %s=(%s)" % (n, items))
            else:
                lines.append(b"typeset -i %s=%d" % (n, rng.randrange(-5, 5)))
        for i in range(rng.randrange(4)):
            lines.append(b"aliases[a%d]=%s" % (i, quote(value())))
            lines.append(b"f%d() { local x=%s; echo \"$x\" $1 }" % (i, quote(value())))
        for sig in rng.sample(["EXIT", "USR1", "INT", "ZERR", "DEBUG"], rng.randrange(4)):
            lines.append(b"trap -- %s %s" % (rng.choice((b"''", b"': x'", b"'y=1; : '" + quote(quote(value())))), sig.encode()))
        lines.append(b"set -- " + b" ".join(quote(value()) for _ in range(rng.randrange(4))))
        lines.append(b"umask %03o" % rng.randrange(0o100))
        lines.append(b"setopt " + b" ".join(o.encode() for o in rng.sample(self.OPTS, rng.randrange(5))))
        return b"\n".join(lines) + b"\n"

    def test_come_back_as_they_were(self):
        for seed in range(40):
            with self.subTest(seed=seed):
                try:
                    self.assert_twins(self.state(random.Random(seed)))
                finally:
                    self.doCleanups()


if __name__ == "__main__":
    unittest.main()

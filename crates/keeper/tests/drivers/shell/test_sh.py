"""What a captured dash says of itself, and what a fresh one becomes from it."""

import os
import random
import unittest

from harness import Kernel, Sh, assert_cost_is_linear

SH = Sh()
EVERY_BYTE = bytes(range(1, 256))


def dump(kernel):
    """All that dash can list of itself: the capture script has no part in it."""
    text = kernel.run(
        r"""\set; \export -p; \readonly -p; \trap; \set +o; \command alias; \command umask
\command ulimit -a; \command ulimit -Ha; \command pwd; \command printf '<%s>\n' "$@"
"""
    )
    return sorted(x for x in text.split(b"\n") if not x.startswith((b"PPID=", b"_=", b"LINENO=")))


def quote(data):
    return b"'" + data.replace(b"'", b"'\\''") + b"'"


class ShCase(unittest.TestCase):
    maxDiff = 4000

    def kernel(self, **kw):
        kernel = Kernel(SH, **kw)
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


class AStateSays(ShCase):
    def test_each_kind_of_state_has_its_record(self):
        k = self.kernel()
        k.run(
            """cd /usr; x='a b'; export E=1; alias ll='ls -l'; set -o noglob; trap 'echo bye' EXIT; trap '' INT; umask 027
            ulimit -S -n 100; set -- one 'two three'; f() { :; }"""
        )
        r = k.capture()
        self.assertEqual(r.cwd, "/usr")
        self.assertEqual(r.of("env")["E"], "1")
        self.assertEqual(r.of("var"), {"x": "a b"})
        self.assertEqual(r.of("alias"), {"ll": "ls -l"})
        self.assertEqual(r.of("opt"), {"noglob": "on"})
        self.assertEqual(r.of("trap"), {"EXIT": "echo bye", "INT": ""})
        self.assertEqual(r.view["umask"], "0027")
        self.assertEqual(r.of("ulimit")["-n"].split()[0], "100")
        self.assertEqual(r.arguments, ["one", "two three"])

    def test_which_of_the_names_are_functions_now(self):
        k = self.kernel()
        names = "f g gone never printf read ls hidden if".split()
        with open(k.path("names"), "w") as f:
            f.write("".join("\\command -V '%s'\n" % name for name in names))
        k.run("f() { :; }; g() { hit=1; }; gone() { :; }; unset -f gone; printf() { hit=1; }; never=1; hidden() { :; }; alias hidden=x if=x")
        self.assertEqual(k.capture().functions, {"f", "g", "printf", "hidden"})
        k.run("command() { hit=1; }; read() { hit=1; }; type() { hit=1; }")
        r = k.capture()
        self.assertEqual(r.functions, {"f", "g", "printf", "hidden", "read"})
        self.assertNotIn("hit", r.of("var"))

    def test_no_function_by_a_name_that_nobody_asked_for(self):
        k = self.kernel()
        k.run("command() { :; }; f() { :; }")
        self.assertEqual(k.capture().functions, set())

    def test_the_keepers_own_exit_trap_is_not_the_users(self):
        k = self.kernel()
        k.run("trap ': __sessile_exit' EXIT; trap 'echo u' USR1")
        self.assertEqual(k.capture().of("trap"), {"USR1": "echo u"})


class AFreshKernelGets(ShCase):
    def test_variables_exports_and_readonlys(self):
        self.assert_twins("x=1; readonly r=2; export e=3; readonly re=4; export re; export novalue; empty=; y='it'\\''s'")

    def test_values_that_look_like_listings(self):
        self.assert_twins("""a='x
FAKE=1
b=2
ll=x'; b='
'; c='
trailing
'""")

    def test_every_byte(self):
        q = quote(EVERY_BYTE)
        r, new = self.assert_twins(b"x=" + q + b"; export E=" + q + b"; set -- " + q + b"; alias al=" + q + b"; trap -- " + q + b" USR1\n")

    def test_values_of_a_megabyte(self):
        self.assert_twins("big=$(yes 'it is \"big\" $x' | head -c 1000000); huge=$(yes | tr -d '\\n' | head -c 100000); export huge")

    def test_the_environment_less_what_was_unset(self):
        env = {"PATH": os.environ["PATH"], "GONE": "1", "CHANGED": "old"}
        _, _, new = self.reborn("unset GONE PS4; CHANGED=new; export ADDED=1", env=env)
        self.assertEqual(
            new.run("/usr/bin/env | /usr/bin/grep -v -e ^_= -e ^PATH= -e PWD= | /usr/bin/sort; echo ${PS4-none}"),
            b"ADDED=1\nCHANGED=new\nnone\n",
        )

    def test_options_errexit_included(self):
        self.assert_twins("set -u -f -x -v -C -a; x=1")
        _, _, new = self.reborn("set -e; x=1")
        self.assertEqual(new.run("case $- in *e*) echo $x;; esac"), b"1\n")

    def test_traps_arguments_masks_and_directories(self):
        _, new = self.assert_twins(
            """trap 'echo "it'\\''s
trap -- over INT"' EXIT; trap '' INT; trap 'x=1' USR1; set -- a '' 'x
y'; umask 077; ulimit -S -n 64; ulimit -H -c 100; cd /usr; cd /usr/lib; OPTIND=3"""
        )
        self.assertEqual(new.run("cd - >/dev/null; pwd"), b"/usr\n")

    def test_functions_whose_source_the_keeper_adds(self):
        old = self.kernel()
        old.run("alias g='echo aliased'; set -e; trap 'x=1' USR1")
        new = self.kernel()
        # As the keeper adds them: one that cannot be read costs only itself.
        sources = ("broken() { fi; }", "f() { echo 'it'; }")
        new.restore(old.capture(), "".join("\\command eval %s || \\:\n" % quote(s.encode()).decode() for s in sources))
        self.assertEqual(new.run("f; case $- in *e*) echo strict;; esac"), b"it\nstrict\n")

    def test_a_file_size_limit(self):
        _, r, new = self.reborn("x=1; ulimit -S -f 64")
        self.assertEqual(r.of("ulimit")["-f"].split()[0], "64")
        self.assertEqual(new.capture().of("ulimit")["-f"].split()[0], "64")


class HostileState(ShCase):
    def test_functions_over_builtins_are_not_called(self):
        names = "alias cd command echo printf pwd read test true type ulimit umask unalias".split()
        k = self.kernel()
        k.run("x=1\n" + "".join("%s() { called=1; }\n" % n for n in names))
        self.assertEqual(k.capture().of("var"), {"x": "1"})

    def test_aliases_over_reserved_words(self):
        words = "if then else fi for while until do done case esac in { } ! exit set trap eval command unset export".split()
        k = self.kernel()
        k.run("x=1; alias " + " ".join("'%s=: \"%s\"'" % (w, w) for w in words))
        r = k.capture()
        self.assertEqual(r.of("alias"), {w: ': "%s"' % w for w in words})
        new = self.kernel()
        new.restore(r)
        self.assertEqual(new.capture().of("alias"), r.of("alias"))

    def test_a_strange_or_missing_IFS(self):
        for text in ("IFS=", "IFS=abcdef=:/", "unset IFS", "export IFS"):
            with self.subTest(text):
                self.assert_twins("y=1; set -- a b; alias q=r; trap 'echo t' USR1; " + text)

    def test_no_path(self):
        self.assert_twins("unset PATH; x=1")

    def test_what_is_readonly_already(self):
        self.assert_twins("readonly PATH HOME LANG; x=1")


class TheCapturedShell(ShCase):
    def test_is_not_disturbed(self):
        k = self.kernel()
        k.run("trap 'echo x' USR1; set -- 1 2; x=1; sleep 100 & first=$!")
        before = dump(k)
        listing = k.run("jobs; echo $first $!")
        for _ in range(3):
            k.capture()
        self.assertEqual(dump(k), before)
        self.assertEqual(k.run("jobs; echo $first $!"), listing)


class AtTheExit(ShCase):
    def test_exit_leaves_its_status_and_the_state(self):
        status, r = self.kernel().exit_with("x=1; f() { exit 3; }; cd /usr; f")
        self.assertEqual((status, r.of("var"), r.cwd), (3, {"x": "1"}, "/usr"))
        self.assertEqual(r.of("trap"), {})

    def test_errexit_and_nounset_too(self):
        status, r = self.kernel().exit_with("x=1; set -e; false; x=2")
        self.assertEqual((status, r.of("var")["x"]), (1, "1"))


class TheCost(ShCase):
    def test_grows_with_the_state_and_not_with_its_square(self):
        items = ("v{0}={0}", "readonly v{0}={0}", "alias a{0}=b")
        assert_cost_is_linear(self, SH, items)


class RandomStates(ShCase):
    """Any state that these pieces make comes back, with the same seeds each time."""

    def state(self, rng):
        def value():
            pool = rng.choice((EVERY_BYTE, b"\n'\"$`\\ \t!*?[](){}=:#~&|;<>", b"\nab='x'\nexport q"))
            return bytes(rng.choice(pool) for _ in range(rng.randrange(60)))

        lines = []
        for i in range(rng.randrange(10)):
            lines.append(rng.choice((b"", b"export ", b"readonly ")) + b"v%d=%s" % (i, quote(value())))
        for i in range(rng.randrange(4)):
            lines.append(b"alias a%d=%s" % (i, quote(value())))
        for sig in rng.sample(["EXIT", "USR1", "INT", "HUP"], rng.randrange(4)):
            lines.append(b"trap -- %s %s" % (rng.choice((b"''", quote(b": " + value()))), sig.encode()))
        lines.append(b"set -- " + b" ".join(quote(value()) for _ in range(rng.randrange(4))))
        lines.append(b"umask %03o" % rng.randrange(0o100))
        for o in rng.sample(["allexport", "noclobber", "noglob", "nounset", "xtrace"], rng.randrange(4)):
            lines.append(b"set -o " + o.encode())
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

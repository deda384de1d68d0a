"""Values, exit codes, errors: what a run answers."""
import base64
import json
import os
import subprocess
import unittest

from kernel import PYTHON, VERSION, Kernel


class Case(unittest.TestCase):
    def setUp(self):
        self.k = Kernel()
        self.addCleanup(self.k.close)

    def run_ok(self, code, **options):
        run = self.k.run(code, **options)
        self.assertEqual(run.code, 0, run.err)
        return run


class Values(Case):
    def test_it_says_which_interpreter_is_ready(self):
        version = subprocess.check_output([PYTHON, "-c", "import sys; print(sys.version.split()[0])"])
        self.assertEqual(self.k.ready["version"], version.decode().strip())
        self.assertTrue(os.path.isabs(self.k.ready["executable"]))

    def test_a_variable_is_remembered(self):
        self.run_ok("x = 41")
        self.assertEqual(self.run_ok("x + 1").text, "42")

    def test_the_last_expression_is_the_result(self):
        self.assertEqual(self.run_ok("a = 2\nb = 3\na * b").text, "6")
        self.assertEqual(self.run_ok("'é\\n'").text, repr("é\n"))

    def test_a_statement_or_none_is_no_result(self):
        for code in ("x = 1", "None", "pass", "", "# only a comment", "print()"):
            self.assertIsNone(self.run_ok(code).report["result"], code)

    def test_a_semicolon_keeps_the_value_back(self):
        self.assertIsNone(self.run_ok("1 + 1;").report["result"])
        self.assertEqual(self.run_ok("1 + 1  # not this;").text, "2")
        self.assertEqual(self.run_ok("'ends in ;'").text, "'ends in ;'")

    def test_underscore_holds_the_last_value_unless_the_user_took_it(self):
        self.run_ok("6 * 7")
        self.assertEqual(self.run_ok("_ + 1").text, "43")
        self.run_ok("_ = 'mine'")
        self.run_ok("1")
        self.assertEqual(self.run_ok("_").text, "'mine'")

    def test_a_huge_repr_is_cut_and_said_to_be(self):
        run = self.run_ok("'x' * (3 << 20)")
        self.assertEqual(len(run.text), 1 << 20)
        self.assertIn("cut", run.notes[0])

    def test_richer_forms_come_along(self):
        run = self.run_ok(
            "class R:\n"
            "  def _repr_html_(self): return '<b>x</b>'\n"
            "  def _repr_png_(self): return b'\\x89PNG'\n"
            "  def _repr_json_(self): return {'a': [1, None]}\n"
            "  def _repr_latex_(self): raise RuntimeError\n"
            "  def _repr_mimebundle_(self, include=None, exclude=None): return {'text/markdown': '*x*'}\n"
            "R()")
        self.assertEqual(run.data, {"text/html": "<b>x</b>", "text/markdown": "*x*",
                                    "image/png": base64.b64encode(b"\x89PNG").decode(),
                                    "application/json": {"a": [1, None]}})

    def test_an_object_that_answers_to_every_name_has_no_forms(self):
        run = self.run_ok("from unittest.mock import MagicMock\nMagicMock(name='m')")
        self.assertEqual(run.data, {})

    def test_a_repr_that_raises_fails_the_run(self):
        run = self.k.run("class B:\n  def __repr__(self): raise ValueError('no')\nB()")
        self.assertEqual((run.code, run.error), (1, {"type": "ValueError", "message": "no"}))

    def test_text_of_any_size_and_kind_is_code(self):
        big = "x = [\n" + "".join("  %d,\n" % i for i in range(200000)) + "]\nlen(x)"
        self.assertEqual(self.run_ok(big).text, "200000")
        tricky = "s = '''a\"b\\\\n'''\nt = r\"\\d'\"\ns + t"
        self.assertEqual(self.run_ok(tricky).text, repr("a\"b\\n" + r"\d'"))
        self.assertEqual(self.run_ok("\ufeffx = 1\r\nx + 1\r\n").text, "2")

    def test_a_lone_surrogate_does_not_break_the_channel(self):
        run = self.k.run("raise ValueError('\\ud800 and \U0001f600')")
        self.assertEqual(run.error["message"], "\ufffd and \U0001f600")

    def test_short_text_may_come_with_the_message(self):
        self.assertEqual(self.run_ok("x = 'é'\nx", inline=True).text, "'é'")
        self.assertEqual(self.run_ok("\ufeffx", inline=True).text, "'é'")

    def test_a_future_import_holds_for_later_runs(self):
        self.run_ok("from __future__ import annotations")
        self.run_ok("def f(x: not_defined): pass")

    def test_deeply_nested_code_still_runs(self):
        self.run_ok("x = " + "+".join(["1"] * 2000))


class ExitCodes(Case):
    def test_an_exception_is_one_with_its_type_and_message(self):
        run = self.k.run("raise KeyError('k')")
        self.assertEqual((run.code, run.error), (1, {"type": "KeyError", "message": "'k'"}))
        self.assertIn("KeyError: 'k'", run.err)

    def test_system_exit_is_its_number_and_the_kernel_stays(self):
        self.run_ok("x = 1")
        for code, expected in (("import sys; sys.exit(3)", 3), ("raise SystemExit", 0), ("exit()", 0),
                               ("quit(4)", 4), ("import sys; sys.exit(-1)", 255),
                               ("import sys; sys.exit(True)", 1)):
            self.assertEqual(self.k.run(code).code, expected, code)
        run = self.k.run("import sys; sys.exit('why')")
        self.assertEqual((run.code, run.err), (1, "why\n"))
        self.assertEqual(self.run_ok("x").text, "1")

    def test_a_syntax_error_looks_as_python_prints_it(self):
        run = self.k.run("x = 1\ny = = 2\n")
        self.assertEqual((run.code, run.error["type"]), (1, "SyntaxError"))
        self.assertTrue(run.err.startswith('  File "<run 1>", line 2\n    y = = 2\n'), run.err)
        self.assertNotIn("Traceback", run.err)

    def test_null_bytes_are_an_error_and_no_more(self):
        self.assertEqual(self.k.run(b"x = 1\0").code, 1)
        self.run_ok("1")

    def test_os_exit_ends_the_kernel_with_that_status(self):
        from kernel import Gone
        with self.assertRaises(Gone) as gone:
            self.k.run("import os; os._exit(7)")
        self.assertEqual(gone.exception.args[0], 7)

    def test_the_exit_message_runs_atexit_handlers(self):
        path = os.path.join(self.k.home, "mark")
        self.run_ok("import atexit; atexit.register(lambda: open(%r, 'w').close())" % path)
        self.assertEqual(self.k.exit(), 0)
        self.assertTrue(os.path.exists(path))


class Tracebacks(Case):
    def test_it_shows_the_users_lines_and_none_of_ours(self):
        self.run_ok("def f(x):\n    return 1 / x")
        run = self.k.run("def g():\n    f(0)\n\ng()")
        for line in ('File "<run 2>", line 4, in <module>', 'File "<run 2>", line 2, in g', "    f(0)",
                     'File "<run 1>", line 2, in f', "    return 1 / x"):
            self.assertIn(line, run.err)
        self.assertNotIn("sessile", run.err)

    def test_chained_exceptions_are_clean_too(self):
        run = self.k.run("try:\n    1/0\nexcept Exception as e:\n    raise ValueError('v') from e")
        self.assertIn("direct cause", run.err)
        self.assertEqual(run.err.count("File "), 2)
        self.assertNotIn("sessile", run.err)

    def test_the_users_hook_is_honoured(self):
        run = self.k.run("import sys\nsys.excepthook = lambda t, v, tb: print('hook', t.__name__, tb.tb_lineno)\n1/0")
        self.assertEqual((run.out, run.err, run.code), ("hook ZeroDivisionError 3\n", "", 1))

    def test_a_hook_that_fails_hides_nothing(self):
        run = self.k.run("import sys\nsys.excepthook = lambda *a: {}['no']\n1/0")
        self.assertIn("KeyError: 'no'", run.err)
        self.assertIn("ZeroDivisionError", run.err)

    def test_user_code_can_format_its_own_traceback_at_once(self):
        run = self.run_ok("import traceback\ntry:\n    1/0  # here\nexcept Exception:\n    traceback.print_exc()")
        self.assertIn("1/0  # here", run.err)

    def test_an_exception_whose_str_fails_is_still_reported(self):
        run = self.k.run("class E(Exception):\n  def __str__(self): raise RuntimeError\nraise E()")
        self.assertEqual((run.code, run.error["type"]), (1, "E"))

    def test_recursion_is_an_error_like_any_other(self):
        run = self.k.run("def f(): f()\nf()")
        self.assertEqual((run.code, run.error["type"]), (1, "RecursionError"))
        self.run_ok("1")

    def test_a_thread_shows_its_lines(self):
        run = self.run_ok("import threading\ndef f():\n    1/0  # in a thread\n"
                          "t = threading.Thread(target=f); t.start(); t.join()")
        self.assertIn("1/0  # in a thread", run.err)
        self.assertNotIn("sessile", run.err)

    @unittest.skipIf(VERSION < (3, 11), "exception groups came with 3.11")
    def test_groups_are_clean_too(self):
        run = self.k.run("raise ExceptionGroup('g', [ValueError(1), TypeError(2)])")
        self.assertIn("ExceptionGroup: g", run.err)
        self.assertNotIn("sessile", run.err)


class Sources(Case):
    def test_the_source_of_what_was_typed_is_found(self):
        self.run_ok("def greet(name):\n    # a comment\n    return name")
        self.run_ok("class Plain:\n    x = 1\n\nclass Full(Plain):\n    def m(self):\n        return 2\n")
        run = self.run_ok("import inspect\nprint(inspect.getsource(greet) + inspect.getsource(Plain)"
                          " + inspect.getsource(Full) + inspect.getsource(Full.m))")
        self.assertEqual(run.out, "def greet(name):\n    # a comment\n    return name\n"
                                  "class Plain:\n    x = 1\n"
                                  "class Full(Plain):\n    def m(self):\n        return 2\n"
                                  "    def m(self):\n        return 2\n\n")

    def test_the_source_is_found_in_the_run_that_defines_it(self):
        run = self.run_ok("import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))")
        self.assertEqual(run.out, "def f():\n    return 1\n\n")

    def test_classes_that_were_typed_can_be_pickled(self):
        self.run_ok("class P:\n    def __init__(self): self.v = 5\nimport pickle\nd = pickle.dumps(P())")
        self.assertEqual(self.run_ok("pickle.loads(d).v").text, "5")


class Surroundings(Case):
    def test_user_code_sees_a_bare_interpreter(self):
        run = self.run_ok("import sys, json\nprint(json.dumps([__name__, sys.path[0], sys.argv, sorted(k for k in"
                          " globals() if not k.startswith('__')), sys.modules['__main__'].__dict__ is globals()]))")
        self.assertEqual(json.loads(run.out), ["__main__", "", [""], ["json", "sys"], True])
        run = self.run_ok("[m for m in sys.modules if 'sessile' in m or 'driver' in m], "
                          "[p for p in sys.path if p.startswith(%r)], '__file__' in globals()" % self.k.directory)
        self.assertEqual(run.text, "([], [], False)")

    def test_modules_of_the_working_directory_are_imported_and_ours_are_safe_from_them(self):
        for name in ("traceback", "linecache", "threading", "asyncio", "mine"):
            with open(os.path.join(self.k.home, name + ".py"), "w") as file:
                file.write("who = 'user'\n")
        self.assertEqual(self.run_ok("import mine; mine.who").text, "'user'")
        self.assertIn("1/0", self.k.run("1/0").err)

    def test_extra_environment_lasts_for_one_run(self):
        self.run_ok("import os; os.environ['KEPT'] = 'k'")
        env = {"EXTRA": "e", "KEPT": "other", "MINE": "m"}
        run = self.run_ok("os.system('echo $EXTRA $KEPT'); os.environ['MINE'] = 'changed'", env=env)
        self.assertEqual(run.out, "e other\n")
        self.assertEqual(self.run_ok("os.environ.get('EXTRA'), os.environ['KEPT'], os.environ['MINE']").text,
                         "(None, 'k', 'changed')")


if __name__ == "__main__":
    unittest.main()

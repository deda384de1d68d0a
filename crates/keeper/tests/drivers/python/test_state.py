"""What the kernel says it remembers, without touching it."""
import unittest

from kernel import Kernel
from test_values import Case


class Imports(Case):
    def imports(self):
        return self.k.state()["imports"]

    def test_only_what_was_really_imported_is_listed(self):
        self.assertEqual(self.imports(), [])
        self.run_ok("import math\nfrom os import path\nimport xml.dom as d, json")
        self.k.run("import textwrap\nimport not_there\nimport string")
        self.k.run("from os import not_a_name")
        self.run_ok("try:\n    import also_not_there\nexcept ImportError:\n    import colorsys")
        self.assertEqual(self.imports(), ["math", "os", "xml.dom", "json", "textwrap", "colorsys"])

    def test_an_import_after_the_failure_is_not_listed_even_if_the_module_is_loaded(self):
        self.k.run("1/0\nimport os\nimport sys")
        self.assertEqual(self.imports(), [])

    def test_an_import_in_a_function_counts_once_it_has_happened(self):
        self.run_ok("def f():\n    import colorsys")
        self.assertEqual(self.imports(), [])
        self.run_ok("f()")
        self.assertEqual(self.imports(), ["colorsys"])

    def test_an_import_that_was_deleted_again_was_still_an_import(self):
        self.run_ok("import os\ndel os")
        self.assertEqual(self.imports(), ["os"])


class Variables(Case):
    def test_variables_have_a_type_and_a_short_repr(self):
        self.run_ok("a = 1\nb = 'x' * 1000\nc = {'k': [1, (2,)]}\nd = 10 ** 5000\ne = list(range(10 ** 6))\n"
                    "f = None\n_hidden = 1\nimport datetime\ng = datetime.date(2020, 1, 2)\nh = {1}\ni = b'b'")
        found = {v["name"]: (v["type"], v["repr"]) for v in self.k.state()["variables"]}
        self.assertEqual(found["a"], ("int", "1"))
        self.assertEqual(found["c"], ("dict", "{'k': [1, (2,)]}"))
        self.assertEqual(found["d"], ("int", "<int of 16610 bits>"))
        self.assertEqual(found["e"], ("list", "[0, 1, 2, 3, 4, 5, 6, 7, \u2026 1000000 in all]"))
        self.assertEqual(found["g"], ("date", "datetime.date(2020, 1, 2)"))
        self.assertEqual(found["h"], ("set", "{1}"))
        self.assertLessEqual(len(found["b"][1]), 120)
        self.assertEqual(sorted(found), list("abcdefghi"))

    def test_no_user_code_runs(self):
        self.run_ok("import os\n"
                    "class Meta(type):\n"
                    "    def __getattribute__(c, n): os._exit(9)\n"
                    "class Evil(metaclass=Meta):\n"
                    "    def __repr__(s): os._exit(9)\n"
                    "    def __getattribute__(s, n): os._exit(9)\n"
                    "    def __len__(s): os._exit(9)\n"
                    "    __class__ = property(lambda s: os._exit(9))\n"
                    "class L(list):\n    def __repr__(s): os._exit(9)\n"
                    "    def __iter__(s): os._exit(9)\n"
                    "e = Evil(); deep = [e, {'k': e}]; l = L([1])\n"
                    "def f(x=e): pass")
        found = {v["name"]: v["repr"] for v in self.k.state()["variables"]}
        self.assertEqual(found, {"e": "<__main__.Evil object>", "l": "<__main__.L object>",
                                 "deep": "[<__main__.Evil object>, {'k': <__main__.Evil object>}]"})

    def test_a_structure_that_contains_itself_ends(self):
        self.run_ok("a = []; a.append(a); d = {}; d['d'] = d")
        self.assertEqual(self.k.variable("a")["repr"], "[[[[\u2026]]]]")

    def test_functions_and_classes_are_listed_apart(self):
        self.run_ok("import functools\nfrom os.path import join\n"
                    "def greet(name, n=1): pass\n"
                    "def all_kinds(a, /, b, *c, d, e='x', **f): pass\n"
                    "def only(*, k): pass\n"
                    "@functools.lru_cache(None)\ndef cached(x): pass\n"
                    "class Base: pass\nclass Point(Base): pass")
        state = self.k.state()
        self.assertEqual([f["signature"] for f in state["functions"]],
                         ["greet(name, n=1)", "all_kinds(a, /, b, *c, d, e='x', **f)", "only(*, k)", "cached(x)"])
        self.assertEqual(state["classes"], [{"name": "Base", "bases": []}, {"name": "Point", "bases": ["Base"]}])
        self.assertEqual(state["variables"], [])

    def test_the_directory_and_the_environment_are_live(self):
        self.run_ok("import os; os.mkdir('sub'); os.chdir('sub'); os.environ['NEW'] = 'v'; del os.environ['HOME']")
        state = self.k.state()
        self.assertTrue(state["working_dir"].endswith("/sub"))
        self.assertEqual(state["env_vars"]["NEW"], "v")
        self.assertNotIn("HOME", state["env_vars"])

    def test_a_removed_directory_is_none(self):
        self.run_ok("import os; os.mkdir('sub'); os.chdir('sub'); os.rmdir('../sub')")
        self.assertIsNone(self.k.state()["working_dir"])
        self.run_ok("1")

    def test_live_threads_are_named(self):
        self.run_ok("import threading\ne = threading.Event()\nt = threading.Thread(target=e.wait, name='worker'); t.start()")
        self.assertEqual(self.k.state()["threads"], ["worker"])
        self.run_ok("e.set(); t.join()")
        self.assertEqual(self.k.state()["threads"], [])

    def test_undecodable_environment_does_not_break_the_answer(self):
        kernel = Kernel(env={"ODD": "\udcff"})
        self.addCleanup(kernel.close)
        self.assertEqual(kernel.state()["env_vars"]["ODD"], "\ufffd")


if __name__ == "__main__":
    unittest.main()

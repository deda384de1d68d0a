"""Lines that work in a notebook."""
import os
import unittest

from test_values import Case


class Habits(Case):
    def test_a_command_runs_in_the_shell_on_the_runs_streams(self):
        run = self.run_ok("x = 'there'\nprint('a')\n!echo {x} $x; echo oops >&2\nprint('b')")
        self.assertEqual((run.out, run.err), ("a\nthere there\nb\n", "oops\n"))

    def test_what_is_not_python_is_left_to_the_shell(self):
        self.assertEqual(self.run_ok("!printf 'a b\\n' | awk '{print $2}'; echo $HOME").out,
                         "b\n%s\n" % os.environ["HOME"])

    def test_a_command_in_a_block_keeps_its_indentation(self):
        run = self.run_ok("for i in range(2):\n    if i:\n        !echo {i}\n    else:\n        !echo none")
        self.assertEqual(run.out, "none\n1\n")

    def test_the_lines_of_a_command_can_be_assigned(self):
        self.assertEqual(self.run_ok("out = !printf 'a\\nb\\n'\nout").text, "['a', 'b']")

    def test_a_failing_command_is_noted_and_does_not_raise(self):
        run = self.run_ok("!exit 3\nprint('on')")
        self.assertEqual((run.out, run.notes), ("on\n", ["exit status 3: exit 3"]))

    def test_text_that_looks_alike_inside_a_string_is_not_touched(self):
        text = "'''\n!echo no\n%cd /\npip install x\n'''"
        self.assertEqual(self.run_ok("s = %s\n!echo yes\ns" % text).text, repr(eval(text)))
        self.assertEqual(self.run_ok("%s" % text).text, repr(eval(text)))

    def test_a_command_may_go_on_over_lines_and_line_numbers_stay(self):
        run = self.k.run("!echo one \\\n  two\n\n1/0")
        self.assertEqual(run.out, "one two\n")
        self.assertIn('File "<run 1>", line 4', run.err)

    def test_cd_changes_the_directory(self):
        os.mkdir(self.k.home + "/sub")
        self.assertTrue(self.run_ok("%cd sub").out.strip().endswith("/sub"))
        self.run_ok("%cd -")
        self.assertEqual(os.path.realpath(self.k.state()["working_dir"]), os.path.realpath(self.k.home))
        self.run_ok("cd sub")
        self.assertTrue(self.k.state()["working_dir"].endswith("/sub"))
        self.assertEqual(self.k.run("%cd nowhere").error["type"], "FileNotFoundError")

    def test_env_sets_and_shows(self):
        self.run_ok("%env GREETING=hi there")
        self.assertEqual(self.run_ok("%env GREETING").text, "'hi there'")

    def test_pip_is_this_interpreters(self):
        for line in ("pip list --help", "%pip list --help", "!pip list --help"):
            run = self.run_ok(line)
            self.assertIn("pip list", run.out)
            self.assertEqual(run.notes, [])
        run = self.k.run("pip install --no-index not-a-package-of-anyone")
        self.assertIn("not-a-package-of-anyone", run.err)
        self.assertIn("exit status 1", run.notes[0])

    def test_a_bash_cell(self):
        run = self.run_ok("%%bash\nfor i in {1..3}; do echo $i; done\n")
        self.assertEqual(run.out, "1\n2\n3\n")
        run = self.k.run("%%bash\nexit 4")
        self.assertEqual(run.error["type"], "CalledProcessError")
        self.assertNotIn("sessile", run.err)

    def test_a_file_cell(self):
        self.run_ok("%%writefile note.txt\nline 1\n!not a command\n")
        with open(self.k.home + "/note.txt") as file:
            self.assertEqual(file.read(), "line 1\n!not a command\n")

    def test_time_keeps_what_the_statement_does(self):
        run = self.run_ok("%time y = sum(range(10))\ny")
        self.assertEqual(run.text, "45")
        self.assertIn("Wall time:", run.out)
        self.assertIn("per loop", self.run_ok("%timeit -n 10 -r 2 y + 1").out)

    def test_a_real_mistake_stays_a_syntax_error(self):
        for code in ("x = = 1", "%unknown_magic x", "!echo hi\nx = = 1", "pip frobnicate"):
            run = self.k.run(code)
            self.assertEqual((run.code, run.error["type"]), (1, "SyntaxError"), code)
            self.assertEqual(run.out, "")

    def test_an_error_after_a_command_is_not_chained_to_a_syntax_error(self):
        run = self.k.run("!true\n1/0")
        self.assertNotIn("SyntaxError", run.err)


if __name__ == "__main__":
    unittest.main()

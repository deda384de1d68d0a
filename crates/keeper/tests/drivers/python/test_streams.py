"""Output, input, descriptors."""
import itertools
import os
import unittest

from kernel import Fifo
from test_values import Case


class Output(Case):
    def test_print_and_children_arrive_in_order(self):
        run = self.run_ok("import os, subprocess, sys\n"
                          "for i in range(20):\n"
                          "    print('p', i, end=' ')\n"
                          "    os.system('printf \"s %d \"' % i)\n"
                          "    sys.stdout.write('w ')\n"
                          "    subprocess.call(['printf', 'c '])\n"
                          "    os.write(1, b'd\\n')\n")
        self.assertEqual(run.out, "".join("p %d s %d w c d\n" % (i, i) for i in range(20)))

    def test_streams_are_apart_and_byte_for_byte(self):
        run = self.run_ok("import sys, os\nsys.stdout.buffer.write(bytes(range(256)))\n"
                          "sys.stderr.write('err')\nprint(os.fsdecode(b'\\xff'))\nprint('\\ud800')")
        self.assertEqual(run.bytes["stdout"], bytes(range(256)) + b"\xff\n\\ud800\n")
        self.assertEqual(run.err, "err")

    def test_c_stdio_is_not_held_back(self):
        run = self.run_ok("import ctypes\nc = ctypes.CDLL(None)\nc.printf(b'one ')\nprint('two')\nc.printf(b'three')")
        self.assertEqual((run.out, self.run_ok("pass").out), ("one two\nthree", ""))

    def test_a_hundred_megabytes_are_all_there(self):
        run = self.run_ok("import sys\nfor i in range(100): sys.stdout.write('%08d' % i * (1 << 17))")
        self.assertEqual(len(run.bytes["stdout"]), 100 << 20)
        self.assertTrue(run.out.endswith("00000099"))

    def test_no_descriptor_of_a_finished_run_stays_open(self):
        run = self.run_ok("print(1)")
        run.wait_closed()

    def test_a_background_child_does_not_delay_the_answer(self):
        run = self.run_ok("import subprocess; p = subprocess.Popen(['sh', '-c', 'read x; echo late'],"
                          " stdin=subprocess.PIPE)")
        self.run_ok("p.stdin.write(b'go\\n'); p.stdin.close(); p.wait()")
        run.wait_for("late")

    def test_children_inherit_nothing_of_ours(self):
        run = self.run_ok("import os; os.system('ls /proc/self/fd')")
        self.assertEqual(run.out.split(), ["0", "1", "2", "3"])

    def test_a_child_that_makes_the_pipe_non_blocking_loses_nothing(self):
        run = self.run_ok("import os\nos.set_blocking(1, False)\nprint('x' * 3000000)")
        self.assertEqual(len(run.out), 3000001)


class Mistreated(Case):
    def survives(self, code):
        self.k.run(code)
        run = self.run_ok("import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.stdout.write('')\ninput")
        self.assertEqual((run.out, run.err), ("out\n", "err\n"), code)
        run = self.k.run("1/0")
        self.assertIn("ZeroDivisionError", run.err)

    def test_streams_replaced_closed_or_deleted_are_back_for_the_next_run(self):
        for code in ("import sys, os; sys.stdout = open(os.devnull, 'w')", "import sys; sys.stdout.close()",
                     "import sys; del sys.stdout, sys.stderr, sys.stdin", "import sys; sys.stdout = None",
                     "import sys, io; sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')",
                     "import sys; sys.stdout.detach()", "import sys; sys.stderr = 3; 1/0",
                     "import os; os.close(1); os.close(2); os.close(0)", "import sys; sys.stdin.close()"):
            self.survives(code)

    def test_a_run_that_has_closed_its_stderr_still_says_what_failed(self):
        run = self.k.run("import os; os.close(2); 1/0")
        self.assertEqual(run.error, {"type": "ZeroDivisionError", "message": "division by zero"})

    def test_a_replaced_stream_is_noted_and_flushed(self):
        run = self.run_ok("import sys, io\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer)\nprint('held')")
        self.assertEqual(run.out, "held\n")
        self.assertIn("sys.stdout was replaced", run.notes[0])

    def test_descriptors_of_ours_may_be_closed_or_overwritten(self):
        self.survives("import os; os.closerange(3, 2000)")
        self.survives("import os\nf = os.open('/dev/zero', 0)\nfor n in range(990, 1001): os.dup2(f, n)")
        self.survives("import os; os.closerange(0, 2000)")
        for source, target in itertools.permutations(range(998, 1001), 2):
            self.survives("import os; os.dup2(%d, %d)" % (source, target))

    def test_a_logger_that_kept_the_stream_writes_to_the_current_run(self):
        self.run_ok("import logging; logging.basicConfig(); log = logging.getLogger('l')")
        self.assertEqual(self.run_ok("log.warning('now')").err, "WARNING:l:now\n")


class Input(Case):
    def test_input_is_empty_by_default(self):
        self.assertEqual(self.k.run("input()").error["type"], "EOFError")
        self.assertEqual(self.run_ok("import sys; sys.stdin.read()").text, "''")

    def test_input_gets_the_runs_text_and_nothing_is_left_for_the_next(self):
        run = self.run_ok("a = input('? ')\nb = input()\n(a, b)", stdin="one\ntwo\nthree\n")
        self.assertEqual((run.text, run.out), ("('one', 'two')", "? "))
        self.assertEqual(self.run_ok("import sys; sys.stdin.read()").text, "''")
        self.assertEqual(self.run_ok("input()", stdin="four\n").text, "'four'")

    def test_children_read_the_runs_input(self):
        self.assertEqual(self.run_ok("import os; os.system('cat')", stdin="hi\n").out, "hi\n")

    def test_an_open_stream_feeds_the_run_while_it_goes(self):
        run = self.k.start("for _ in range(2): print('got', input())", stdin=Fifo)
        fd = os.open(run.stdin, os.O_WRONLY)
        os.write(fd, b"a\n")
        run.wait_for("got a")
        os.write(fd, b"b\n")
        self.assertEqual(run.wait().out, "got a\ngot b\n")
        os.close(fd)


if __name__ == "__main__":
    unittest.main()

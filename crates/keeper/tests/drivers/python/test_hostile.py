"""User code may do anything; the kernel answers the next run."""
import os
import time
import unittest

from kernel import secret
from test_values import Case


class Hostile(Case):
    def survives(self, code):
        self.k.run(code)
        run = self.k.run("print(6 * 7)")
        self.assertEqual(run.out, "42\n", (code, run.err))
        self.assertEqual(self.k.run("1/0").error, {"type": "ZeroDivisionError", "message": "division by zero"})
        self.assertEqual(self.k.run("40 + 2").text, "42")
        self.assertEqual(self.k.state()["op"], "state")

    def test_builtins_redefined(self):
        for code in ("open = None; len = 3; repr = None; compile = exec = eval = None",
                     "import builtins\ndel builtins.len, builtins.open, builtins.exec, builtins.getattr",
                     "import builtins\nbuiltins.isinstance = builtins.type = builtins.str = None",
                     "import builtins\nbuiltins.__dict__.clear()"):
            self.setUp()
            self.survives(code)

    def test_modules_patched_or_cleared(self):
        for code in ("import os, sys, json\nos.read = os.write = os.open = os.fstat = json.dumps = sys._getframe = None",
                     "import posix\nfor n in list(posix.__dict__):\n    if n[0] != '_': setattr(posix, n, None)",
                     "import sys; sys.modules.clear()", "import sys; del sys.modules['__main__']",
                     "import sys; sys.path[:] = []; sys.meta_path[:] = []", "import sys; sys.excepthook = None"):
            self.setUp()
            self.survives(code)

    def test_the_namespace_emptied(self):
        self.survives("globals().clear()")
        self.survives("del __name__, __builtins__")
        self.survives("kernel = load = channel = streams = 1")

    def test_tracing_and_limits_left_behind(self):
        self.survives("import sys; sys.settrace(lambda *a: None)")
        self.setUp()
        self.survives("import sys; sys.setprofile(lambda *a: None)")
        self.survives("import sys; sys.setrecursionlimit(60)")
        self.survives("import gc; gc.disable()")

    def test_a_tracer_of_the_users_sees_the_next_run_and_nothing_of_ours(self):
        self.run_ok("import sys\nseen = set()\ndef tr(f, e, a):\n    seen.add(f.f_code.co_filename)\n    return None\nsys.settrace(tr)")
        self.run_ok("def g(): pass\ng()")
        run = self.run_ok("sys.settrace(None)\n'<run 2>' in seen, [n for n in seen if 'sessile' in n]")
        self.assertEqual(run.text, "(True, [])")

    def test_memory_exhausted(self):
        self.survives("x = bytearray(1 << 62)")

    def test_a_later_run_is_answered_truly_whatever_was_changed_of_the_driver(self):
        find = "import sys\nf = sys._getframe()\nwhile 'kernel' not in f.f_locals: f = f.f_back\nk = f.f_locals['kernel']\ng = f.f_globals\n"
        forge = "lambda *a: (0, None, None)\n"
        for change in (
                "C = type(k.channel)\nsend = C.send\nC.send = lambda s, t: send(s, t.replace('\"exit_code\":1', '\"exit_code\":0'))",
                "C = type(k.channel)\nsecret = C.secret\nseen = []\nC.secret = lambda s: seen.append(secret(s)) or seen[-1]",
                "while '_perform' not in g: f = f.f_back; g = f.f_globals\ng['_perform'] = " + forge,
                "while '_perform' not in g: f = f.f_back; g = f.f_globals\ng['_perform'].__code__ = (" + forge.strip() + ").__code__",
                "while '_perform' not in g: f = f.f_back; g = f.f_globals\ng['encode'] = lambda v: '{\"exit_code\":0,\"result\":null,\"error\":null,\"notes\":[]}'",
                "import copy\nk.sources = type(k.sources)()",
                "type(k.compiler).compile = lambda *a: None",
                "f.f_globals['__builtins__']['exec'] = f.f_globals['__builtins__']['eval'] = lambda *a: None",
                "class Same:\n    def __eq__(s, o): return True\n    __hash__ = None\n    def __call__(s, *a): return 0, None, None\n"
                "while '_perform' not in g: f = f.f_back; g = f.f_globals\ng['_perform'] = Same()"):
            self.setUp()
            # What a run does to its own answer is its own affair.
            self.k.run(find + change)
            later = self.k.run("1/0")
            self.assertEqual((later.code, later.error["type"]), (1, "ZeroDivisionError"), change)
            self.assertIn("put back", later.notes[0], change)
            self.assertEqual(self.k.run("6 * 7").text, "42", change)

    def test_a_change_in_a_burst_of_runs_is_put_back_before_anything_else_is_asked(self):
        change = ("import sys\nf = sys._getframe()\nwhile '_perform' not in f.f_globals: f = f.f_back\n"
                  "f.f_globals['_perform'] = lambda *a: (0, None, None)")
        for _ in range(20):
            self.run_ok("pass")
        self.k.run(change)
        self.assertEqual(self.k.state()["op"], "state")
        later = self.k.run("1/0")
        self.assertEqual((later.code, later.error["type"]), (1, "ZeroDivisionError"))
        self.assertIn("put back", later.notes[0])

    def test_a_change_in_a_burst_of_runs_is_put_back_soon(self):
        change = ("import sys\nf = sys._getframe()\nwhile '_perform' not in f.f_globals: f = f.f_back\n"
                  "f.f_globals['_perform'] = lambda *a: (0, None, None)")
        for _ in range(20):
            self.run_ok("pass")
        self.k.run(change)
        # Runs without a pause, for no longer than a second.
        until = time.monotonic() + 1
        later = self.k.run("1/0")
        while later.code == 0 and time.monotonic() < until:
            later = self.k.run("1/0")
        self.assertEqual(later.code, 1)
        self.assertIn("put back", later.notes[0])

    def test_builtins_that_no_part_has_used_yet_are_put_back_before_one_does(self):
        self.run_ok("import sys\nf = sys._getframe()\nwhile 'kernel' not in f.f_locals: f = f.f_back\n"
                    "for b in {id(b): b for b in (f.f_globals['__builtins__'], type(sys.stdout).close.__globals__['__builtins__'])}.values():\n"
                    "    b.update(dict.fromkeys(['SystemExit', 'bytearray', 'complex', 'frozenset', 'id', 'issubclass', 'set'], None))")
        later = self.k.run("def f(): 1/0\nf()")
        self.assertEqual((later.code, later.error["type"]), (1, "ZeroDivisionError"), later.err)
        self.assertIn("in f", later.err)
        self.assertEqual(self.k.run("{'a': [6 * 7]}").text, "{'a': [42]}")
        self.assertEqual(self.k.state()["op"], "state")

    def test_the_driver_changes_nothing_of_its_own(self):
        for code in ("import threading, asyncio, inspect", "await asyncio.sleep(0)", "1/0", "open('/nosuch')", "%cd /", "!true",
                     "threading.Thread(target=print).start()", "asyncio.create_task(asyncio.sleep(0))", "6 * 7"):
            self.assertEqual(self.k.run(code).notes, [], code)
            self.k.state()
        self.assertEqual(self.k.run("0").notes, [])

    def test_no_descriptor_left(self):
        exhaust = "import os\nfs = []\nwhile 1: fs.append(os.open('/dev/null', 0))"
        run = self.k.run(exhaust)
        self.assertEqual(run.error["type"], "OSError", run.err)
        self.assertIn("Too many open files", run.err)
        run = self.k.run("import sys; print(len(fs) > 9, sys.stdin.read()); print('e', file=sys.stderr)", stdin="in")
        self.assertEqual((run.out, run.err, run.error), ("True in\n", "e\n", None))
        self.assertIn("ulimit -n", run.notes[0])
        self.assertEqual(self.k.run("1/0").error["type"], "ZeroDivisionError")
        self.assertEqual(self.k.run("6 * 7").text, "42")
        self.assertEqual(self.k.state()["op"], "state")
        self.run_ok("for f in fs: os.close(f)")
        self.assertEqual(self.run_ok("open('/dev/null').close()").notes, [])
        self.survives(exhaust)

    def test_no_descriptor_left_by_what_is_shown(self):
        self.k.run("import os\nfs = []\ndef take():\n    while 1: fs.append(os.open('/dev/null', 0))\n"
                   "class C:\n    def __repr__(self): take()\nclass E(Exception):\n    def __str__(self): take()")
        self.k.run("C()")
        self.k.run("raise E")
        self.run_ok("for f in fs: os.close(f)")
        self.survives("0")

    def test_a_removed_directory(self):
        self.survives("import os; os.mkdir('d'); os.chdir('d'); os.rmdir('../d')")

    def test_a_run_whose_files_are_missing_is_answered(self):
        run = self.k.start("1")
        run.wait()
        self.k.runs[2] = type(run)(self.k, 2, {})
        self.k.runs[2].held = []
        self.k._count = 2
        os.write(self.k.seal, secret(2))
        self.k.send({"op": "run", "run": 2, "code": "/nowhere/x", "stdin": "/dev/null",
                     "stdout": "/nowhere/o", "stderr": "/nowhere/e"})
        self.k.pump(lambda: self.k.runs[2].report is not None)
        self.assertEqual(self.k.runs[2].report["error"]["type"], "KernelError")
        self.run_ok("1")

    def test_no_frame_object_or_module_shows_the_secret_of_a_run(self):
        run = self.run_ok('''
import gc, sys
backwards = "10terces"
def texts():
    frame = sys._getframe()
    while frame is not None:
        yield from (repr(value) for value in {**frame.f_locals, **frame.f_globals}.values() if type(value) in (str, bytes))
        frame = frame.f_back
    for thing in gc.get_objects():
        yield from (repr(value) for value in gc.get_referents(thing) if type(value) in (str, bytes))
print(sum(1 for _ in texts()) > 1000, [text for text in texts() if backwards in text[::-1]])
''')
        self.assertEqual(run.out, "True []\n")

    def test_a_report_whose_secret_somebody_else_has_read_is_made_again(self):
        run = self.k.start("import os\nfd = os.open(%r, os.O_RDONLY)\nos.read(fd, 99)" % (self.k.directory + "/n"))
        self.k.pump(lambda: any(m["op"] == "unproven" for m in self.k.messages))
        self.assertEqual(self.k._take("unproven")["secret"], "")
        os.write(self.k.seal, secret(1))
        self.k.send({"op": "again"})
        self.assertEqual(run.wait().text, repr(secret(1)))
        self.run_ok("1")


if __name__ == "__main__":
    unittest.main()

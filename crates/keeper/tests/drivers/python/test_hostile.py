"""User code may do anything; the kernel answers the next run."""
import os
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

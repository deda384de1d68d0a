"""SIGINT: strikes user code wherever it is, never the driver."""
import os
import signal
import tempfile
import unittest

from test_values import Case


class Interrupts(Case):
    def is_interrupted(self, code, **options):
        run = self.k.start("kept = 1\n" + code, **options).wait_for("go")
        run.interrupt().wait()
        self.assertEqual((run.code, run.error["type"]), (130, "KeyboardInterrupt"), run.err)
        self.assertNotIn("sessile", run.err)
        self.assertEqual(self.run_ok("kept").text, "1")
        return run

    def test_a_loop(self):
        run = self.is_interrupted("def f():\n    while True: str()\nprint('go', end='')\nprint()\nf()")
        self.assertIn('File "<run 1>"', run.err)

    def test_a_loop_that_prints(self):
        self.is_interrupted("while True: print('go')")

    def test_a_sleep(self):
        self.is_interrupted("import time\nprint('go')\ntime.sleep(1000)")

    def test_a_blocked_read(self):
        self.is_interrupted("import os\nr, w = os.pipe()\nprint('go')\nos.read(r, 1)")

    def test_a_wait_for_a_child(self):
        self.is_interrupted("import subprocess\nprint('go')\n"
                            "p = subprocess.Popen(['sleep', '1000'])\ntry:\n    p.wait()\nfinally:\n    p.kill()")

    def test_a_wait_for_a_thread(self):
        self.is_interrupted("import threading\ne = threading.Event()\nprint('go')\ne.wait()")

    def test_a_repr(self):
        self.is_interrupted("class R:\n  def __repr__(self):\n    print('go')\n    while True: pass\nR()")

    def test_an_exceptions_own_text(self):
        run = self.k.start("class E(Exception):\n  def __str__(self):\n    print('go')\n    while True: pass\nraise E()")
        run.wait_for("go").interrupt()
        # Asked for the text twice (traceback, message): each needs its interrupt.
        while run.report is None:
            try:
                os.kill(self.k.process.pid, signal.SIGINT)
                self.k._step(0.05)
            except ProcessLookupError:
                break
        self.assertEqual(run.wait().error["type"], "E")
        self.run_ok("1")

    def test_an_await(self):
        self.is_interrupted("import asyncio\nprint('go')\nawait asyncio.Event().wait()")

    def test_a_loop_in_a_coroutine(self):
        self.is_interrupted("import asyncio\nawait asyncio.sleep(0)\nprint('go')\nwhile True: pass")

    def test_asyncio_run(self):
        self.is_interrupted("import asyncio\nasync def f():\n    print('go')\n    await asyncio.sleep(1000)\nasyncio.run(f())")

    def test_code_that_swallows_the_first_ends_at_the_second(self):
        # A sleep, not a bare loop: 3.13 leaves the jump of a loop out of its try block.
        run = self.k.start("import time\nn = 0\nwhile True:\n  try:\n    print('go', n)\n    while n < 2: time.sleep(99)\n    break\n"
                           "  except KeyboardInterrupt:\n    n += 1")
        run.wait_for("go 0").interrupt().wait_for("go 1").interrupt()
        self.assertEqual(run.wait().code, 0)

    def test_when_idle_it_changes_nothing(self):
        for _ in range(50):
            self.k.interrupt()
        self.assertEqual(self.run_ok("1 + 1").text, "2")

    def test_at_any_moment_every_run_is_answered(self):
        """A storm of signals: no report is lost or doubled, the kernel stays."""
        self.run_ok("n = 0")
        for code in ("n += 1", "n", "1/0", "import asyncio; await asyncio.sleep(0)", "print(n)") * 40:
            run = self.k.start(code)
            while run.report is None:
                self.k.interrupt()
                self.k._step(0.0005)
            run.drain()
            if code == "n += 1":
                # Its status is that of what it says of itself.
                said = run.error and run.error["type"]
                self.assertEqual((run.code, said), (130, "KeyboardInterrupt") if said else (0, None), run.err)
        self.assertNotEqual(self.run_ok("n").text, None)

    def test_a_handler_of_the_users_stays(self):
        self.run_ok("import signal, time\nhits = []\nsignal.signal(signal.SIGINT, lambda *a: hits.append(1))")
        run = self.k.start("print('go')\nwhile not hits: pass").wait_for("go").interrupt().wait()
        self.assertEqual(run.code, 0)
        self.k.interrupt()
        self.assertEqual(self.run_ok("len(hits)").text, "1")

    def test_a_handler_that_ignores_lasts_for_its_run_only(self):
        self.run_ok("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)")
        self.is_interrupted("print('go')\nwhile True: pass")

    def test_an_alarm_that_goes_off_when_idle_does_no_harm(self):
        with tempfile.TemporaryDirectory() as place:
            gone_off = os.path.join(place, "gone_off")
            self.run_ok("import signal, os\ndef boom(*a):\n    os.mkdir(%r)\n    raise TimeoutError\n"
                        "signal.signal(signal.SIGALRM, boom)" % gone_off)
            # The report of the run is long sent when the state is told: a handler that
            # raises in its sending may make it come twice (`channel.send`).
            self.k.state()
            os.kill(self.k.process.pid, signal.SIGALRM)
            self.k.pump(lambda: os.path.exists(gone_off))
            self.run_ok("1")


if __name__ == "__main__":
    unittest.main()

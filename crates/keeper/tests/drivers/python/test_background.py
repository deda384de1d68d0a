"""Threads, tasks, children: what lives on after its run."""
import unittest

from test_values import Case

SPEAKER = ("import threading\ngate = threading.Event()\n"
           "def speak():\n    gate.wait()\n    print('late')\n"
           "t = threading.Thread(target=speak)\nt.start()\nprint('started')")


class Threads(Case):
    def test_a_thread_writes_to_the_run_that_started_it(self):
        first = self.run_ok(SPEAKER)
        second = self.run_ok("gate.set()\nt.join()\nprint('second')")
        first.wait_for("late")
        self.assertEqual((first.out, second.out), ("started\nlate\n", "second\n"))
        first.wait_closed()
        second.wait_closed()

    def test_a_thread_of_a_thread_does_too(self):
        first = self.run_ok("import threading\ngate = threading.Event()\n"
                            "def inner():\n    print('inner')\n"
                            "def outer():\n    gate.wait()\n    i = threading.Thread(target=inner); i.start(); i.join()\n"
                            "t = threading.Thread(target=outer); t.start()")
        second = self.run_ok("gate.set(); t.join()")
        first.wait_for("inner").wait_closed()
        self.assertEqual(second.out, "")

    def test_a_server_logs_to_the_run_that_started_it(self):
        first = self.run_ok("import http.server, threading, urllib.request\n"
                            "s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n"
                            "t = threading.Thread(target=s.serve_forever, daemon=True); t.start()")
        second = self.run_ok("o = urllib.request.build_opener(urllib.request.ProxyHandler({}))\n"
                             "o.open('http://127.0.0.1:%d/' % s.server_port).status")
        self.assertEqual(second.text, "200")
        first.wait_for('"GET / HTTP/1.1" 200', "stderr")
        self.assertEqual(second.err, "")

    def test_a_pool_that_a_library_starts_is_known_too(self):
        with open(self.k.home + "/lib.py", "w") as file:
            file.write(SPEAKER)
        first = self.run_ok("import lib")
        self.run_ok("lib.gate.set(); lib.t.join()")
        first.wait_for("late")

    def test_sys_exit_in_a_thread_ends_the_thread(self):
        self.run_ok("import threading, sys\nt = threading.Thread(target=sys.exit, args=(3,)); t.start(); t.join()")
        self.run_ok("1")


class Tasks(Case):
    def test_top_level_await_works_and_gives_a_value(self):
        self.assertEqual(self.run_ok("import asyncio\nasync def f(): return 5\nx = await f()\nx + await f()").text, "10")
        self.assertEqual(self.run_ok("[i async for i in (lambda: (asyncio.sleep(0, j) for j in []))()] "
                                     "if False else await asyncio.sleep(0, 'v')").text, "'v'")

    def test_a_task_goes_on_while_the_kernel_is_idle(self):
        first = self.run_ok("import asyncio\nasync def tick():\n    for i in range(3):\n"
                            "        await asyncio.sleep(0.01)\n        print('tick', i)\n"
                            "t = asyncio.create_task(tick())")
        first.wait_for("tick 2").wait_closed()
        self.assertEqual(self.run_ok("t.done()").text, "True")

    def test_a_task_writes_to_the_run_that_started_it(self):
        first = self.run_ok("import asyncio\ngate = asyncio.Event()\nasync def late():\n    await gate.wait()\n"
                            "    print('late')\nt = asyncio.create_task(late())\nawait asyncio.sleep(0)")
        second = self.run_ok("gate.set()\nawait t\nprint('second')")
        first.wait_for("late").wait_closed()
        self.assertEqual(second.out, "second\n")

    def test_a_server_in_the_loop_answers_between_runs(self):
        import socket
        run = self.run_ok("import asyncio\nasync def serve(r, w):\n    w.write(b'hello'); w.close()\n"
                          "s = await asyncio.start_server(serve, '127.0.0.1', 0)\nprint(s.sockets[0].getsockname()[1])")
        with socket.create_connection(("127.0.0.1", int(run.out))) as peer:
            self.assertEqual(peer.recv(100), b"hello")

    def test_asyncio_run_still_works_and_so_does_await_after_it(self):
        self.assertEqual(self.run_ok("import asyncio\nasync def f(): return 1\nasyncio.run(f())").text, "1")
        self.assertEqual(self.run_ok("await f()").text, "1")
        self.assertEqual(self.run_ok("asyncio.run(f())").text, "1")

    def test_context_variables_are_remembered(self):
        self.run_ok("import contextvars, asyncio\nv = contextvars.ContextVar('v')\nv.set(1)\nawait asyncio.sleep(0)")
        self.assertEqual(self.run_ok("v.get()").text, "1")

    def test_an_exception_in_an_await_shows_only_the_users_frames(self):
        run = self.k.run("import asyncio\nasync def f():\n    1/0\nawait f()")
        self.assertEqual((run.code, run.error["type"]), (1, "ZeroDivisionError"))
        self.assertNotIn("sessile", run.err)
        self.assertNotIn("asyncio", run.err.replace("import asyncio", ""))
        self.assertIn("await f()", run.err)

    def test_exit_in_an_await_is_an_exit(self):
        self.assertEqual(self.k.run("import asyncio, sys\nawait asyncio.sleep(0)\nsys.exit(4)").code, 4)
        self.run_ok("await asyncio.sleep(0)")

    def test_a_closed_loop_is_replaced(self):
        self.run_ok("import asyncio\nloop = asyncio.get_event_loop_policy().new_event_loop()\nawait asyncio.sleep(0)")
        self.run_ok("asyncio.set_event_loop(None)")
        self.run_ok("await asyncio.sleep(0)")

    def test_a_task_that_closes_our_descriptors_does_not_wedge_the_kernel(self):
        self.run_ok("import asyncio, os\nasync def sweep():\n    await asyncio.sleep(0.01)\n"
                          "    os.closerange(900, 1001)\n    done.set()\n"
                          "    await asyncio.sleep(30)\ndone = asyncio.Event()\nt = asyncio.create_task(sweep())")
        self.assertEqual(self.run_ok("await done.wait()").text, "True")
        self.run_ok("t.cancel()")


class Children(Case):
    def test_a_forked_child_does_not_answer(self):
        run = self.run_ok("import os\npid = os.fork()\nif pid == 0:\n    print('child')\nelse:\n"
                          "    status = os.waitpid(pid, 0)[1]\n    print('parent', status)")
        self.assertEqual(run.out, "child\nparent 0\n")
        run = self.run_ok("pid = os.fork()\nif pid == 0:\n    raise SystemExit(3)\nos.waitpid(pid, 0)[1] >> 8")
        self.assertEqual(run.text, "3")
        run = self.run_ok("pid = os.fork()\nif pid == 0:\n    1/0\nos.waitpid(pid, 0)[1] >> 8")
        self.assertEqual(run.text, "1")
        self.assertIn("ZeroDivisionError", run.err)

    def test_multiprocessing_by_fork_uses_what_was_typed(self):
        run = self.run_ok("import multiprocessing as mp\ndef f(x): return x * x\n"
                          "with mp.get_context('fork').Pool(2) as p: print(p.map(f, [1, 2, 3]))")
        self.assertEqual(run.out, "[1, 4, 9]\n")

    def test_multiprocessing_by_spawn_does_not_run_the_driver_again(self):
        run = self.run_ok("import multiprocessing as mp, math\n"
                          "with mp.get_context('spawn').Pool(1) as p: print(p.map(math.sqrt, [4.0, 9.0]))")
        self.assertEqual(run.out, "[2.0, 3.0]\n")
        self.run_ok("1")


if __name__ == "__main__":
    unittest.main()

"""A kernel's namespace in a file, and in another kernel."""
import os
import unittest

from kernel import Kernel
from test_values import Case


class Carrying(Case):
    def carry(self, *codes, **options):
        """Runs these, and goes on in a new kernel with what they left."""
        for code in codes:
            self.run_ok(code)
        path, report = self.k.dump()
        self.assertIsNone(report["error"])
        self.dumped = {item["name"]: item["reason"] for item in report["left"]}
        with open(path, "rb") as file:
            data = file.read()
        count = self.k._count
        self.k = Kernel(**options)
        self.k._count = count  # the numbers of a session go on
        self.addCleanup(self.k.close)
        copy = self.k.directory + "/carried"
        with open(copy, "wb") as file:
            file.write(data)
        self.report = self.k.load(copy)
        self.assertIsNone(self.report["error"])
        self.left = {item["name"]: item["reason"] for item in self.report["left"]}

    def shows(self, code, text):
        self.assertEqual(self.run_ok(code).text, text)


class Values(Carrying):
    def test_data_is_carried(self):
        self.carry("a = 1\nb = [1, {'k': (2, b'x')}]\nimport datetime\nc = datetime.date(2020, 1, 2)")
        self.shows("a, b, c.isoformat()", "(1, [1, {'k': (2, b'x')}], '2020-01-02')")
        self.assertEqual((self.dumped, self.left), ({}, {}))
        self.assertEqual(self.report["carried"], 4)

    def test_shared_objects_stay_shared(self):
        self.carry("a = b = []\nc = {'x': a}\nd = [0]\ne = (d, d)\na.append(1)")
        self.shows("a is b, c['x'] is a, e[0] is d, e[1] is d, a", "(True, True, True, True, [1])")

    def test_cycles_are_carried(self):
        self.carry("a = []\nb = {'a': a}\na.append(b)")
        self.shows("a[0] is b and b['a'] is a", "True")

    def test_what_cannot_be_carried_is_named_and_spoils_nothing(self):
        self.carry("import socket, threading\nok = [1]\ns = socket.socket()\nf = open('/dev/null')\n"
                   "lock = threading.Lock()\ng = (x for x in ok)\nholder = {'ok': ok, 'f': f}")
        self.assertEqual(set(self.dumped), {"s", "f", "lock", "g", "holder"})
        self.assertEqual(self.dumped["s"], "a socket cannot be carried")
        self.assertEqual(self.dumped["f"], "an open file cannot be carried")
        self.assertEqual(self.dumped["lock"], "a lock cannot be carried")
        self.assertEqual(self.dumped["g"], "a generator cannot be carried")
        self.assertEqual(self.dumped["holder"], "it holds an open file, which cannot be carried")
        self.shows("ok", "[1]")

    def test_what_cannot_be_loaded_takes_nothing_with_it(self):
        self.carry("class Bad:\n    def __init__(self, x): self.x = x\n"
                   "    def __setstate__(self, state): raise ValueError('no\\nway')\n",
                   "a = [1]\nbad = Bad(a)\nc = {'a': a}")
        self.assertEqual(self.left, {"bad": "it cannot be loaded: ValueError: no way"})
        self.shows("a, c", "([1], {'a': [1]})")

    def test_private_names_are_carried_and_special_ones_are_not(self):
        self.carry("_cache = {1: 2}\n__x__ = 1\n5")
        self.shows("_cache", "{1: 2}")
        self.shows("'__x__' in globals()", "False")

    def test_a_thread_is_named(self):
        self.carry("import threading\nstop = threading.Event()\n"
                   "threading.Thread(target=stop.wait, name='worker', daemon=True).start()")
        self.assertEqual(self.dumped["worker"], "a thread cannot be carried")

    def test_deep_nesting_is_refused_without_harm(self):
        self.carry("a = 1\nb = []\nfor _ in range(100000): b = [b]")
        self.assertEqual(list(self.dumped), ["b"])
        self.shows("a", "1")

    def test_much_data_is_carried(self):
        self.carry("a = list(range(300000))\nb = b'x' * 5000000\nc = [str(i) for i in range(50000)]")
        self.shows("len(a), len(b), c[-1]", "(300000, 5000000, '49999')")


class Definitions(Carrying):
    def test_functions_are_carried_by_their_source(self):
        self.carry("count = 0\ndef tick(by=1, *, twice=False):\n    'Ticks.'\n    global count\n"
                   "    count += by * (2 if twice else 1)\n    return count")
        self.shows("tick(), tick(2, twice=True), count", "(1, 5, 5)")
        self.shows("tick.__doc__, tick.__defaults__", "('Ticks.', (1,))")
        self.shows("import inspect\ninspect.getsource(tick).splitlines()[0]",
                   repr("def tick(by=1, *, twice=False):"))

    def test_nothing_of_a_run_is_executed_again(self):
        self.carry("log = []\ndef noted(f):\n    log.append(f.__name__)\n    return f\n"
                   "def default():\n    log.append('default')\n    return log",
                   "@noted\ndef f(x=default()):\n    return x")
        self.shows("log, f() is log", "(['default', 'f'], True)")

    def test_closures_lambdas_and_recursion_are_carried(self):
        self.carry("def counter():\n    n = 0\n    def inc():\n        nonlocal n\n        n += 1\n        return n\n"
                   "    def get(): return n\n    return inc, get\ninc, get = counter()\ninc()",
                   "add = lambda a, b=2: a + b\npair = [lambda: 1, lambda: 2]",
                   "def make():\n    def fact(n): return 1 if n < 2 else n * fact(n - 1)\n    return fact\nfact = make()")
        self.shows("inc(), get(), add(1), pair[0](), pair[1](), fact(5)", "(2, 2, 3, 1, 2, 120)")
        self.assertEqual(self.dumped, {})

    def test_decorated_functions_are_carried(self):
        self.carry("import functools\ndef twice(f):\n    @functools.wraps(f)\n    def wrapper(*a):\n"
                   "        return 2 * f(*a)\n    return wrapper",
                   "@twice\ndef f(x):\n    return x\n@functools.lru_cache(maxsize=7)\ndef g(x):\n    return x + 1\n"
                   "h = functools.partial(f, 4)")
        self.shows("f(3), g(1), g.cache_info().maxsize, h(), f.__wrapped__(3)", "(6, 2, 7, 8, 3)")

    def test_classes_and_instances_are_carried(self):
        self.carry("LIMIT = 3\nclass Base:\n    limit = LIMIT\n    made = 0\n    def __init__(self, x):\n"
                   "        self.x = x\n        Base.made += 1",
                   "class Point(Base):\n    __slots__ = ('y',)\n    def __init__(self, x, y):\n"
                   "        super().__init__(x)\n        self.y = y\n    @property\n    def sum(self): return self.x + self.y\n"
                   "    @classmethod\n    def zero(cls): return cls(0, 0)\n    class Inner: pass",
                   "p = Point(1, 2)\nq = [p, Base(5)]\ninner = Point.Inner()")
        self.shows("p.sum, q[0] is p, isinstance(p, Base), type(p) is Point, Base.made, Point.zero().sum",
                   "(3, True, True, True, 2, 0)")
        self.shows("isinstance(inner, Point.Inner), Point.limit", "(True, 3)")

    def test_dataclasses_enums_and_named_tuples_are_carried(self):
        self.carry("import dataclasses, enum, collections, typing, abc",
                   "@dataclasses.dataclass\nclass D:\n    x: int\n    y: list = dataclasses.field(default_factory=list)\n"
                   "class Color(enum.Enum):\n    RED = 1\n    BLUE = 2\n"
                   "class T(typing.NamedTuple):\n    a: int\n    b: str = 'b'\n"
                   "class A(abc.ABC):\n    @abc.abstractmethod\n    def go(self): ...\n"
                   "class B(A):\n    def go(self): return 1",
                   "P = collections.namedtuple('P', 'x y', defaults=[9])\nd = D(1)\nc = Color.RED\nt = T(1)\np = P(1)\nb = B()")
        self.shows("d == D(1), c is Color.RED, t, p, b.go(), dataclasses.asdict(d)",
                   "(True, True, T(a=1, b='b'), P(x=1, y=9), 1, {'x': 1, 'y': []})")
        self.assertEqual((self.dumped, self.left), ({}, {}))

    def test_instances_of_a_class_that_was_replaced_keep_theirs(self):
        self.carry("class A:\n    def who(self): return 'old'\na = A()", "class A:\n    def who(self): return 'new'\nb = A()")
        self.shows("a.who(), b.who(), type(b) is A, type(a) is A", "('old', 'new', True, False)")

    def test_a_class_attribute_that_cannot_be_carried_is_made_anew(self):
        self.carry("import threading\nclass A:\n    lock = threading.Lock()\n    seen = []\n    def go(self):\n"
                   "        with self.lock: return len(self.seen)\nA.seen.append(1)\na = A()")
        self.shows("a.go()", "1")

    def test_what_was_carried_can_be_carried_again(self):
        self.carry("def f(): return 1\nclass A:\n    def g(self): return f()\na = A()")
        self.carry("b = a")
        self.carry("def f(): return 2")
        self.shows("a.g(), b is a", "(2, True)")

    def test_notebook_lines_in_a_text_do_no_harm(self):
        self.carry("!true\ndef f(): return 3")
        self.shows("f()", "3")

    def test_future_features_stay(self):
        self.carry("from __future__ import annotations\ndef f(x: Undefined): return x")
        self.shows("f.__annotations__", "{'x': 'Undefined'}")
        self.run_ok("def g(x: AlsoUndefined): return x")

    def test_code_without_a_source_is_named(self):
        self.carry("exec('def f(): return 1')\na = 1")
        if "f" in self.dumped:
            self.assertEqual(self.dumped["f"], "the source of f is not known")
        self.shows("a", "1")


class Surroundings(Carrying):
    def test_modules_are_imported_again_under_their_names(self):
        self.carry("import json as j, os.path\nfrom math import pi, floor\nimport xml.dom")
        self.shows("j.dumps([1]), os.path.sep, floor(pi), xml.dom.__name__", "('[1]', '/', 3, 'xml.dom')")
        self.assertIn("json", self.k.state()["imports"])

    def test_a_module_that_is_missing_is_named(self):
        with open(self.k.home + "/gone_later.py", "w") as file:
            file.write("class Thing: pass\n")
        self.carry("import gone_later, json, os\nthing = gone_later.Thing()\nx = 1\nos.remove('gone_later.py')\n"
                   "os.environ['PYTHONDONTWRITEBYTECODE'] = '1'")
        self.assertEqual(self.left["gone_later"],
                         "module gone_later cannot be imported: "
                         "ModuleNotFoundError: No module named 'gone_later'")
        self.assertIn("thing", self.left)
        self.shows("x, json.dumps(1)", "(1, '1')")

    def test_directory_environment_and_path_are_carried(self):
        self.carry("import os, sys\nos.mkdir('/tmp/carry-%d' % os.getpid())\nos.chdir('/tmp/carry-%d' % os.getpid())\n"
                   "where = os.getcwd()\nos.environ['NEW'] = 'x'\ndel os.environ['GOES']\n"
                   "sys.path.insert(0, '/first')\nsys.path.append('/last')\nenv = os.environ",
                   env={"GOES": "1"})
        self.addCleanup(os.rmdir, self.run_ok("where").text.strip("'"))
        self.shows("os.getcwd() == where, os.environ['NEW'], 'GOES' in os.environ, env is os.environ",
                   "(True, 'x', False, True)")
        self.shows("sys.path[0], sys.path[-1], sys.path.count('/last')", "('/first', '/last', 1)")

    def setUp(self):
        self.k = Kernel(env={"GOES": "1"})
        self.addCleanup(self.k.close)


class Robustness(Carrying):
    def test_a_damaged_dump_is_refused_and_the_kernel_stays_fresh(self):
        self.run_ok("a = 1")
        path, _ = self.k.dump()
        with open(path, "rb") as file:
            data = file.read()
        for at in list(range(0, len(data), 7)) + [len(data) - 1]:
            broken = bytearray(data)
            broken[at] ^= 0x55
            with open(path + "x", "wb") as file:
                file.write(broken)
            self.assertIsNotNone(self.k.load(path + "x")["error"], at)
        with open(path + "x", "wb") as file:
            file.write(data[:-1])
        self.assertIsNotNone(self.k.load(path + "x")["error"])
        self.assertIsNotNone(self.k.load("/not/there")["error"])
        self.shows("a", "1")

    def test_dumping_is_not_noticed_by_the_kernel(self):
        self.run_ok("import os, signal\nclass Loud:\n    def __reduce__(self):\n        print('loud')\n"
                    "        global x\n        x = 2\n        return (Loud, ())\nloud = Loud()\nx = 1")
        path, report = self.k.dump()
        self.assertEqual(report["left"], [])
        run = self.run_ok("x")
        self.assertEqual((run.text, run.out), ("1", ""))
        self.assertEqual(self.k.run("os.wait()").error["type"], "ChildProcessError")

    def test_a_dump_does_not_overwrite_a_file(self):
        self.run_ok("a = 1")
        with open(self.k.directory + "/dump1", "w") as file:
            file.write("mine")
        self.assertEqual(self.k.dump()[1]["error"], "file exists")
        with open(self.k.directory + "/dump1") as file:
            self.assertEqual(file.read(), "mine")

    def test_a_reduce_that_ends_the_process_leaves_the_kernel_alone(self):
        self.run_ok("import os\nclass End:\n    def __reduce__(self): os._exit(3)\nend = End()")
        with self.assertRaises(FileNotFoundError):
            self.k.dump()
        self.shows("1", "1")

    def test_hostile_namespaces_are_carried(self):
        self.carry("import builtins, sys, os, pickle\nlen = None\ndel builtins.sorted\npickle.dumps = None\na = [1]\n"
                   "globals()[5] = 6")
        self.shows("a", "[1]")


if __name__ == "__main__":
    unittest.main()

"""matplotlib, numpy, pandas: stand-ins with the parts that the driver touches, so
that the tests need nothing installed; the real ones where they are."""
import base64
import os
import subprocess
import unittest

from kernel import PYTHON
from test_values import Case

PYPLOT = """
import os
backend = os.environ.get('MPLBACKEND')
_open = {}
class Figure:
    def __init__(self, n): self.n = n
    def savefig(self, file, format, bbox_inches): file.write(b'png%d' % self.n)
    def __repr__(self): return '<Figure %d>' % self.n
def figure(n=None):
    n = n or len(_open) + 1
    return _open.setdefault(n, Figure(n))
def get_fignums(): return list(_open)
def close(which): _open.clear()
"""


def has(name):
    return subprocess.call([PYTHON, "-c", "import " + name], stderr=subprocess.DEVNULL) == 0


class Figures(Case):
    def setUp(self):
        super().setUp()
        os.mkdir(self.k.home + "/matplotlib")
        open(self.k.home + "/matplotlib/__init__.py", "w").close()
        with open(self.k.home + "/matplotlib/pyplot.py", "w") as file:
            file.write(PYPLOT)

    def test_open_figures_are_the_result_and_are_closed(self):
        run = self.run_ok("import matplotlib.pyplot as plt\nplt.figure();")
        self.assertEqual(run.report["result"], {"text": "<Figure 1>", "data": {
            "image/png": base64.b64encode(b"png1").decode()}})
        self.assertIsNone(self.run_ok("pass").report["result"])
        run = self.run_ok("a = plt.figure(1)\nb = plt.figure(2)\n'value'")
        self.assertEqual((run.text, len(run.data["image/png"])), ("'value'", 2))

    def test_figures_of_a_failed_run_come_too(self):
        run = self.k.run("import matplotlib.pyplot as plt\nf = plt.figure()\n1/0")
        self.assertEqual((run.code, list(run.data)), (1, ["image/png"]))

    def test_the_backend_needs_no_display_and_leaves_no_variable(self):
        run = self.run_ok("import matplotlib.pyplot as plt, os\nos.system('echo ${MPLBACKEND-unset}')\nplt.backend")
        self.assertEqual((run.text, run.out), ("'Agg'", "unset\n"))
        self.assertEqual(self.run_ok("'MPLBACKEND' in os.environ").text, "False")
        self.assertNotIn("MPLBACKEND", self.k.state()["env_vars"])

    def test_a_backend_of_the_users_is_left_alone(self):
        self.assertEqual(self.run_ok("import os\nos.environ['MPLBACKEND'] = 'svg'").code, 0)
        self.assertEqual(self.run_ok("import matplotlib.pyplot as plt; plt.backend").text, "'svg'")
        self.assertEqual(self.run_ok("os.environ['MPLBACKEND']").text, "'svg'")

    def test_a_figure_that_cannot_be_drawn_is_noted(self):
        run = self.run_ok("import matplotlib.pyplot as plt\nplt.Figure.savefig = None\nf = plt.figure()")
        self.assertEqual(run.notes, ["figures could not be drawn: TypeError"])


class Real(Case):
    @unittest.skipUnless(has("matplotlib"), "needs matplotlib")
    def test_matplotlib(self):
        run = self.run_ok("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
        self.assertEqual(base64.b64decode(run.data["image/png"])[:4], b"\x89PNG")
        self.assertEqual(run.err, "")

    @unittest.skipUnless(has("pandas"), "needs pandas")
    def test_frames_and_arrays_are_named_by_shape(self):
        self.run_ok("import numpy as np, pandas as pd\na = np.zeros((10, 3))\nd = pd.DataFrame(a)\ns = d[0]")
        found = {v["name"]: v["repr"] for v in self.k.state()["variables"]}
        self.assertEqual(found, {"a": "<numpy.ndarray <f8 (10, 3)>", "d": "<pandas.DataFrame (10, 3)>",
                                 "s": "<pandas.Series (10,)>"})
        self.assertIn("<table", self.run_ok("d").data["text/html"])

    @unittest.skipUnless(has("uvloop"), "needs uvloop")
    def test_another_make_of_event_loop(self):
        first = self.run_ok("import uvloop, asyncio\nuvloop.install()\nasync def f():\n    await asyncio.sleep(0.01)\n"
                            "    print('late')\nt = asyncio.create_task(f())\nawait asyncio.sleep(0)")
        first.wait_for("late")
        run = self.k.start("print('go')\nawait asyncio.sleep(1000)").wait_for("go").interrupt().wait()
        self.assertEqual(run.code, 130)


if __name__ == "__main__":
    unittest.main()

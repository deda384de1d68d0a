"""matplotlib: a stand-in with the parts that the driver touches, so that the tests
need nothing installed. real_libraries.py tries the real one."""
import base64
import os
import unittest

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


if __name__ == "__main__":
    unittest.main()

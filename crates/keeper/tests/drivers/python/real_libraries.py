"""The real matplotlib, numpy, pandas and uvloop, which `cargo xtask test` installs
for the interpreter in SESSILE_TEST_PYTHON."""
import base64
import unittest

from test_values import Case


class Real(Case):
    def test_matplotlib(self):
        run = self.run_ok("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
        self.assertEqual(base64.b64decode(run.data["image/png"])[:4], b"\x89PNG")
        self.assertEqual(run.err, "")

    def test_frames_and_arrays_are_named_by_shape(self):
        self.run_ok("import numpy as np, pandas as pd\na = np.zeros((10, 3))\nd = pd.DataFrame(a)\ns = d[0]")
        found = {v["name"]: v["repr"] for v in self.k.state()["variables"]}
        self.assertEqual(found, {"a": "<numpy.ndarray <f8 (10, 3)>", "d": "<pandas.DataFrame (10, 3)>",
                                 "s": "<pandas.Series (10,)>"})
        self.assertIn("<table", self.run_ok("d").data["text/html"])

    def test_another_make_of_event_loop(self):
        first = self.run_ok("import uvloop, asyncio\nuvloop.install()\nasync def f():\n    await asyncio.sleep(0.01)\n"
                            "    print('late')\nt = asyncio.create_task(f())\nawait asyncio.sleep(0)")
        first.wait_for("late")
        run = self.k.start("print('go')\nawait asyncio.sleep(1000)").wait_for("go").interrupt().wait()
        self.assertEqual(run.code, 130)


if __name__ == "__main__":
    unittest.main()

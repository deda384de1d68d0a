"""The Python kernel driver: where it starts.

The keeper launches it as `python -u <DIR>/driver.py <DIR>`. `-u` is for C stdio: it
makes C's own stdout unbuffered, so that a `printf` in an extension lands in the run
that called it, and in order.

Must stay short: the interpreter keeps the syntax tree of the file that it was started
with for as long as it lives. Everything that can be elsewhere is in `boot`.
"""
from _signal import SIGINT, signal

# Until the kernel has its own handler: an interrupt must not end us half-way.
signal(SIGINT, lambda signum, frame: None)
space = {"__file__": __file__}
with open(__file__.rpartition("/")[0] + "/boot.py", "rb") as file:
    exec(compile(file.read(), "<sessile boot>", "exec", 0, True, 2), space)
space["boot"]()

"""Top-level await, and tasks that live on between runs.

There is one loop for the kernel's life, created when first needed; a loop that user
code has made current is adopted. The loop runs while an awaiting run is in the
foreground and, if there is work for it, while the kernel waits for its next message.

Invariants: an interrupt cancels the run's task when the loop itself is on top, so the
loop's own bookkeeping is never torn; later runs see what a run sets in context
variables.
"""
from _contextvars import copy_context

background = load("background")

# Interval of checks, while the loop idles, whether user code took our descriptor (epoll
# forgets a closed one silently).
WATCH_SECONDS = 1.0
# How often a task that an interrupt did not reach is asked to end.
CANCEL_ATTEMPTS = 3
COROUTINE = 0x80

# The kernel's loop, if it has one.
_loops = []
# Flows of runs whose tasks may still be running. A finished task that a variable refers
# to keeps its context alive, so references are no evidence.
_kept = []


def find_loop(kernel, create):
    """The kernel's loop, or None if there is none and `create` is false."""
    if _loops and not _loops[0].is_closed():
        return _loops[0]
    loop = _current_of_policy(kernel)
    if loop is None and create:
        loop = kernel.modules["asyncio"].new_event_loop()
    _loops[:] = [] if loop is None else [loop]
    return loop


def _current_of_policy(kernel):
    events = kernel.modules["asyncio.events"]
    policy = getattr(events, "_event_loop_policy", None)
    loop = getattr(getattr(policy, "_local", None), "_loop", None)
    if loop is None or loop.is_closed() or loop.is_running():
        return None
    return loop


# A run in the foreground.

def run(kernel, program):
    asyncio = kernel.import_standard("asyncio")
    loop = find_loop(kernel, True)
    asyncio.set_event_loop(loop)
    flow = background.current(kernel)
    context = copy_context()
    context.run(background.task_flow.set, flow)
    after = []
    task = context.run(loop.create_task, _steps(kernel, program, after))
    interrupts = []
    kernel.cancel = _canceller(loop, task, interrupts)
    try:
        return _drive(asyncio, loop, task, interrupts)
    finally:
        kernel.cancel = None
        _keep_context(after)
        if has_work(kernel, loop):
            flow.keep()
            _kept.append(flow)
        else:
            _let_go()


async def _steps(kernel, program, after):
    value = None
    try:
        for code in (program.body, program.last):
            if code is not None:
                value = eval(code, kernel.space)
                if code.co_flags & COROUTINE:
                    value = await value
    finally:
        after.append(copy_context())
    return value if program.last is not None else None


def _keep_context(after):
    for context in after:
        for variable, value in context.items():
            if variable is not background.task_flow:
                variable.set(value)


def _drive(asyncio, loop, task, interrupts):
    try:
        return loop.run_until_complete(task)
    except BaseException as problem:
        caught = problem
    if isinstance(caught, asyncio.CancelledError) and interrupts:
        raise KeyboardInterrupt().with_traceback(_from_steps(caught.__traceback__)) from None
    _end(loop, task)
    raise caught.with_traceback(_from_steps(caught.__traceback__))


def _from_steps(traceback):
    """Removes the loop's own frames, which belong to the user no more than ours do."""
    entry = traceback
    while entry is not None:
        if entry.tb_frame.f_code is _steps.__code__:
            return entry
        entry = entry.tb_next
    return traceback


def _end(loop, task):
    """Ends the run's own task after an interrupt or exit came out of another task."""
    for _ in range(CANCEL_ATTEMPTS):
        if task.done():
            break
        task.cancel()
        try:
            loop.run_until_complete(task)
        except BaseException:
            pass


def _canceller(loop, task, interrupts):
    def cancel(frame):
        module = frame.f_globals.get("__name__")
        in_loop = type(module) is str and (module == "selectors" or module.startswith("asyncio."))
        if not in_loop and not load.is_shielded(frame):
            return False
        interrupts.append(True)
        task.cancel()
        loop.call_soon_threadsafe(int)  # wakes a loop that sleeps in its selector
        return True

    return cancel


# Between runs.

def has_work(kernel, loop):
    if getattr(loop, "_ready", None) or getattr(loop, "_scheduled", None):
        return True
    selector = getattr(loop, "_selector", None)
    if selector is None:
        return True  # a loop of another make: let it run
    if len(selector.get_map()) > 1:
        return True
    return bool(kernel.modules["asyncio.tasks"].all_tasks(loop))


def idle(kernel, ctl):
    """Runs the loop until the control channel has something to read, or nothing is left
    to do."""
    loop = find_loop(kernel, False)
    if loop is None or loop.is_running():
        return
    arrived = []
    while not arrived and not loop.is_closed() and has_work(kernel, loop):
        fd = ctl()
        loop.add_reader(fd, _stop, loop, arrived)
        watch = loop.call_later(WATCH_SECONDS, loop.stop)
        try:
            loop.run_forever()
        finally:
            watch.cancel()
            if not loop.is_closed():
                loop.remove_reader(fd)
    if not arrived:
        _let_go()


def _stop(loop, arrived):
    arrived.append(True)
    loop.stop()


def _let_go():
    while _kept:
        _kept.pop().let_go()

'use strict';
// Ends user code that will not end by itself: an endless loop on SIGINT, and the
// synchronous rest of a callback after process.exit().
//
// A signal handler in JavaScript runs only when the event loop does. So a separate thread
// (watcher.js) receives SIGINT and asks this thread, between two instructions of whatever
// it executes, for a verdict. The main thread is held in that question until the order to
// terminate is queued behind it: otherwise the loop could end in between and the order
// would hit the driver.
//
// Termination cannot be caught and runs no `finally`, neither the user's nor Node's; what
// Node keeps in such blocks (the stack of async ids) is repaired afterwards, in
// `recover`.

const path = require('node:path');
const inspector = require('node:inspector');
const { Worker } = require('node:worker_threads');
const safe = require('./safe.js');
const files = require('./files.js');

// Read now: a thread reads its file when it is up, and somebody may have removed it.
const WATCHER = files.readText(path.join(__dirname, 'watcher.js'));

const RUN = 0;
const VERDICT = 1;
const QUEUED = 2;
const WATCHING = 3;
const TERMINATE = 1;
const SPARE = 2;
// The watcher answers within microseconds; this limit is for a watcher that died.
const QUEUE_MS = 1000;
// Deep enough to find user code below what it has called.
const FRAMES = 200;
// About ten times what a loaded machine takes.
const START_MS = 1000;
// An event loop that turns at all reports much sooner.
const STUCK_MS = 200;
// Not writable by user code, and found without any lookup that it can change. The caller
// has to know the word; user code does not.
const HOOK = '\u200csessile';
const UUID = '/proc/sys/kernel/random/uuid';
const word = newWord();

const cells = new safe.Int32Array(new safe.SharedArrayBuffer(16));
const connect = safe.uncurry(inspector.Session.prototype.connect);
const post = safe.uncurry(inspector.Session.prototype.post);

let target = '';
let watcher = null;
let depth = 0;
let unheardSince = 0;
let asyncIds = null;
let totals = -1;
let onInterrupt = null;
let onSettled = null;
let onWatching = null;

function newWord() {
  try {
    return files.readText(UUID);
  } catch {
    // Hidden, perhaps by a sandbox: still too much to guess in a few lines.
    return `${process.hrtime.bigint()} ${Math.random()}`;
  }
}

// `interrupted` is called in the middle of user code and may only set plain variables;
// `settled` is called from the event loop after it. `targetFile` is where the keeper may
// write which run it signals for. `watching` is called when the watcher's thread is up.
function install(targetFile, interrupted, settled, watching) {
  target = targetFile;
  onWatching = watching;
  onInterrupt = interrupted;
  onSettled = settled;
  asyncIds = openAsyncIds();
  safe.defineProperty(globalThis, HOOK, { value: judge });
  process.on('SIGINT', beforeWatching);
}

// Node before 24 aborts when the async id stack is not as expected, and offers no other
// way to repair it; Node 24 needs only --no-force-async-hooks-checks.
function openAsyncIds() {
  try {
    const { async_hook_fields: fields, constants, clearAsyncIdStack } = safe.quietly(() => process.binding('async_wrap'));
    return { fields, constants, clearAsyncIdStack };
  } catch {
    return null;
  }
}

// Until the watcher is up, only a loop that still turns can be interrupted.
function beforeWatching() {
  if (safe.AtomicsLoad(cells, WATCHING) === 1) return;
  onInterrupt();
  onSettled();
}

// Costs some 30 ms of another core and a few MB, so not before user code runs.
function watchSignals() {
  if (watcher !== null) return;
  try {
    watcher = new Worker(WATCHER, {
      eval: true,
      workerData: { memory: cells.buffer, hook: HOOK, word, target },
      // A warning would be a message, which would count as something alive.
      execArgv: ['--expose-internals', '--no-warnings'],
      argv: [],
      env: {},
      stdin: false,
      stdout: true,
      stderr: true,
      trackUnmanagedFds: false,
      resourceLimits: { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16 },
    });
  } catch {
    watcher = false;
    return;
  }
  // Not through EventEmitter.prototype, where user code could listen.
  safe.defineProperty(watcher, 'emit', { __proto__: null, value: heard });
  watcher.unref();
}

function heard(event, kind) {
  if (event === 'message') afterSignal(kind);
  return true;
}

// While a thread starts, it opens files: a standard descriptor that is free for an
// instant could become one of them.
function isStarting() {
  return watcher !== null && watcher !== false && safe.AtomicsLoad(cells, WATCHING) === 0;
}

// Waits for the end of the start; a watcher that does not start is not waited for again.
function awaitWatcher() {
  if (isStarting() && safe.AtomicsWait(cells, WATCHING, 0, START_MS) === 'timed-out') watcher = false;
}

function afterSignal(kind) {
  // The event loop turns: whatever was terminated has been left completely.
  depth = 0;
  unheardSince = 0;
  // From here on the watcher's own handle prevents the default action (death), and user
  // code sees no listener of ours.
  if (kind === 'watching') {
    stopListening();
    onWatching();
  } else {
    recover();
    onSettled();
  }
}

function stopListening() {
  try {
    process.removeListener('SIGINT', beforeWatching);
  } catch {
    // User code has frozen process; the listener knows that it is not needed.
  }
}

function setRun(id) {
  safe.AtomicsStore(cells, RUN, id);
}

// Whether the keeper has signalled for this run, even if the signal has not been noticed
// yet: it records that before it sends anything.
function isMeant(id) {
  try {
    return safe.NumberOf(files.readText(target)) === id;
  } catch {
    return false;
  }
}

// From here on a signal is meant for what the driver does between runs; one that comes
// too late does not hit the next run.
function aimBetweenRuns() {
  try {
    const fd = files.open(target, 'w', 0o600);
    files.write(fd, '0');
    files.close(fd);
  } catch {
    // Then a signal hits whatever is going on when it comes.
  }
}

// Called by the watcher's question. `id` is the run that was current when the signal
// came: a run that has started since must not be hit.
function judge(id, said) {
  if (said !== word) return;
  let verdict = SPARE;
  if (id === safe.AtomicsLoad(cells, RUN)) {
    onInterrupt();
    if (depth === 0 && isOver(id !== 0 && isStuck() ? anyCode : userCode)) verdict = TERMINATE;
  }
  if (verdict === TERMINATE) loosen();
  safe.AtomicsStore(cells, QUEUED, 0);
  safe.AtomicsStore(cells, VERDICT, verdict);
  safe.AtomicsNotify(cells, VERDICT);
  if (verdict === TERMINATE) awaitOrder();
}

// Spins: the interrupted code may itself be in Atomics.wait, which cannot be nested. It
// takes some tens of microseconds.
function awaitOrder() {
  const until = safe.now() + QUEUE_MS;
  while (safe.AtomicsLoad(cells, QUEUED) === 0 && safe.now() < until);
}

// Whether an earlier question's outcome still waits for the event loop: then endless
// microtasks keep the loop from turning, and only Node's own code may be on the stack
// when the question comes. Not checked when no run is current, since then Node may be
// about to hand us one.
function isStuck() {
  const now = safe.now();
  if (unheardSince === 0) unheardSince = now;
  return now - unheardSince > STUCK_MS;
}

// Whether such code is on the stack below the question itself. If the event loop is idle,
// termination would hit the next innocent callback; if Node is about to hand us a
// message, the message would be lost.
function isOver(kind) {
  const { Error } = safe;
  const limit = safe.getOwn(Error, 'stackTraceLimit');
  const prepare = safe.getOwn(Error, 'prepareStackTrace');
  const probe = {};
  try {
    safe.defineProperty(Error, 'stackTraceLimit', { value: FRAMES, configurable: true, writable: true });
    safe.defineProperty(Error, 'prepareStackTrace', { value: kind, configurable: true, writable: true });
    Error.captureStackTrace(probe, judge);
    return probe.stack === true;
  } catch {
    return true;
  } finally {
    restore(Error, 'stackTraceLimit', limit);
    restore(Error, 'prepareStackTrace', prepare);
  }
}

const anyCode = (_, sites) => sites.length > 1;

// The first site is the question's own. Built-ins have no line; the continuation of a
// promise is shown, but is not on the stack.
function userCode(_, sites) {
  for (let i = 1; i < sites.length; i++) {
    const site = sites[i];
    const name = site.getScriptNameOrSourceURL();
    const isNode = typeof name === 'string' && safe.startsWith(name, 'node:');
    if (!isNode && site.getLineNumber() !== null && !site.isAsync()) return true;
  }
  return false;
}

function restore(object, key, descriptor) {
  try {
    if (descriptor === undefined) delete object[key];
    else safe.defineProperty(object, key, descriptor);
  } catch {
    // Frozen by user code.
  }
}

function loosen() {
  if (asyncIds === null) return;
  const { fields, constants } = asyncIds;
  if (totals === -1) totals = fields[constants.kTotals];
  fields[constants.kTotals] = 0;
  fields[constants.kCheck] = 0;
}

function recover() {
  if (asyncIds === null || totals === -1) return;
  const { fields, constants, clearAsyncIdStack } = asyncIds;
  clearAsyncIdStack();
  fields[constants.kTotals] = totals;
  totals = -1;
}

// Terminates the user code that called into the driver. Does not return.
function terminate() {
  loosen();
  safe.setImmediate(recover);
  const session = new inspector.Session();
  connect(session);
  post(session, 'Runtime.terminateExecution');
  for (;;);
}

// Wraps an entry point of the driver, which must not be terminated half-way.
function guarded(fn) {
  return function entry(a, b) {
    depth++;
    try {
      return fn(a, b);
    } finally {
      depth--;
    }
  };
}

// Runs the user's code from within the driver: it may be terminated, and then `depth` is
// as if it had returned.
function unguarded(fn) {
  const before = depth;
  depth = 0;
  try {
    return fn();
  } finally {
    depth = before;
  }
}

module.exports = { __proto__: null, install, watchSignals, isStarting, awaitWatcher, setRun, isMeant, aimBetweenRuns, terminate, guarded, unguarded };
//# sourceURL=node:internal/sessile/interrupt

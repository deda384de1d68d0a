'use strict';
// The Node kernel: keeps one interpreter alive and evaluates one run after the
// other in it.
//
//   keeper ── ctl ──► driver: {"op":"run"|"state"|"input"|"dump"|"load"|"exit", …}, a line each
//   keeper ◄─ rep ─── driver: {"op":"ready"|"done"|"state"|"input"|"dumped"|"loaded", …}
//
// Before it sends SIGINT, the keeper may write the number of the run that it means to
// DIR/interrupt, so that a run that starts just then is not hit. A dump or a load puts 0
// there: a signal ends them, but not the next run.
//
// Invariants:
// - completion is reported on `rep` alone, after the run's output has been
//   written; nothing that user code prints or closes can forge or lose it;
// - user code runs only between `start` and `finish`, or in callbacks that it
//   left behind; the driver's own entry points are never terminated half-way;
// - the event loop is never blocked while waiting for the keeper;
// - nothing of the driver shows in process.argv, require.main or a stack;
// - between the end of a run's code and the end of its report, nothing is called
//   or looked up that user code may have put in the place of Node's own: not the
//   methods of buffers, not the properties of Object.prototype.
// It must not exit on an error of the user, and must not write to 0, 1, 2 except for a
// run.

const net = require('node:net');
const { signals } = require('node:os').constants;
const path = require('node:path');
const safe = require('./safe.js');
const files = require('./files.js');
const descriptors = require('./descriptors.js');
const streams = require('./streams.js');
const interrupt = require('./interrupt.js');
const imports = require('./imports.js');
const patches = require('./patches.js');
const report = require('./report.js');
const state = require('./state.js');
const redeclare = require('./redeclare.js');
const environment = require('./environment.js');
const carry = require('./carry.js');
const loading = require('./loading.js');
const { evaluate, messageOf, parses } = require('./evaluate.js');

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = files.constants;
const { exit: leave, reallyExit, _fatalException: rethrow } = process;
const on = safe.uncurry(process.on);
const off = safe.uncurry(process.removeListener);
const countListeners = safe.uncurry(process.listenerCount);
const { Socket } = net;

// Long texts come as files.
const CHUNK = 64 * 1024;
// Minimum duration of a run that starts a child and waits for it.
const WAIT_MS = 2;
// Exit status of a run that was interrupted: 128 + SIGINT, as in a shell.
const INTERRUPTED = 130;

// One for each name that a text declares again as something else.
const ATTEMPTS = 100;

// The longest delay of a timer.
const FOREVER = 0x7fffffff;

const control = { path: '', rest: '' };
const reply = { path: '', fd: -1 };
// The files of a run whose order names no others.
const usual = { code: '', stdin: '/dev/null', stdout: '', stderr: '' };
const waiting = safe.list();

let debuggers = null;
let current = null;
// Proves that the current run's report is ours. Here, where no object that user code can
// get leads.
let secret = '';

// ---- channels

// User code cannot close these: see patches.js.
function openControl() {
  const fd = files.open(control.path, O_RDONLY | O_NONBLOCK);
  // Directly from the handle: no stream in between that user code could patch.
  const onread = { buffer: safe.bufferAlloc(CHUNK), callback: interrupt.guarded(receive) };
  const socket = new Socket({ fd, readable: true, writable: false, onread });
  socket.resume();
  // User code can see what keeps the event loop alive, so this does not; `serve` does
  // that.
  socket.unref();
  socket.on('error', () => {});
  socket.on('close', () => safe.nextTick(openControl));
}

function openReply() {
  reply.fd = files.open(reply.path, O_WRONLY);
}

function send(message) {
  const line = safe.toBytes(`${safe.JSONStringify(message)}\n`);
  if (descriptors.writeText(reply.fd, line)) return;
  openReply();
  descriptors.writeText(reply.fd, line);
}

function receive(count, chunk) {
  control.rest += safe.latin1Slice(chunk, 0, count);
  // User code can find the socket, and with it this memory.
  safe.fill(chunk, 0, 0, count);
  for (;;) {
    const end = safe.indexOf(control.rest, '\n');
    if (end === -1) return true;
    const line = safe.slice(control.rest, 0, end);
    control.rest = safe.slice(control.rest, end + 1);
    obey(safe.setPrototypeOf(safe.JSONParse(safe.fromBytes(line)), null));
  }
}

function obey(message) {
  if (message.op === 'run') {
    if (current === null && !loading.isLoading()) start(message);
    else safe.push(waiting, message);
  } else if (message.op === 'state') {
    send(state.capture(imports.names()));
  } else if (message.op === 'input') {
    // None of the run's code is executing now; what it has queued counts as alive.
    const isGoing = current !== null && current.id === message.run && current.outcome === null;
    send({ __proto__: null, op: 'input', question: message.question, waits: isGoing && streams.awaitsInput(current) });
  } else if (message.op === 'dump') {
    dump(message.path);
  } else if (message.op === 'load') {
    load(message.path, message.cwd);
  } else if (message.op === 'exit') {
    endKernel();
  }
}

// ---- carrying the state

const REFUSED = { __proto__: null, carried: 0, left: safe.list(), error: 'the kernel is busy' };
const isBusy = () => current !== null || loading.isLoading();

function dump(path) {
  if (!isBusy()) interrupt.aimBetweenRuns();
  send({ __proto__: null, op: 'dumped', path, ...(isBusy() ? REFUSED : carry.dump(path)) });
}

function load(path, cwd) {
  const loaded = (done) => {
    send({ __proto__: null, op: 'loaded', ...done });
    if (current === null && waiting.length > 0) start(safe.shift(waiting));
  };
  if (isBusy()) loaded(REFUSED);
  else {
    interrupt.aimBetweenRuns();
    loading.load(path, cwd, loaded);
  }
}

// ---- a run

function start(message) {
  const run = {
    id: message.run,
    began: safe.now(),
    notes: safe.list(),
    outcome: null,
    environment: null,
    paths: null,
    fds: null,
    stdin: null,
    found: null,
    reopened: [false, false, false],
    store: null,
    wrote: 0,
    keepOpen: false,
    leave: null,
    text: '',
    attempts: 0,
  };
  current = run;
  secret = message.secret ?? '';
  interrupt.setRun(run.id);
  try {
    const { stdin, stdout, stderr } = usual;
    streams.open(run, message.stdin ?? stdin, message.stdout ?? stdout, message.stderr ?? stderr);
    begin(run, message);
  } catch (error) {
    settle(run, { __proto__: null, kind: 'error', error: report.errorOf(error) });
  }
}

function begin(run, message) {
  run.environment = message.env ? environment.set(message.env) : null;
  imports.refresh();
  const text = withoutPreamble(message.text ?? files.readText(message.code ?? usual.code));
  report.rememberSource(run.id, text);
  interrupt.watchSignals();
  attempt(run, redeclare.withLet(imports.rewrite(withParens(text))));
}

function attempt(run, text) {
  run.text = text;
  run.attempts++;
  const enter = (fn) => streams.within(run, fn);
  run.leave = evaluate(text, run.id, enter, interrupt.guarded((outcome) => evaluated(run, outcome)));
}

// As in Node's REPL, a text in braces is an object if it can be.
function withParens(text) {
  const isBraced = safe.exec(/^\s*\{[^]*\}\s*$/, text) !== null;
  return isBraced && parses(`(${text})`) ? `(${text})` : text;
}

// A byte order mark and a #! line are legal only at the start of a file, where the text
// is no longer once it has been wrapped for a syntax check.
function withoutPreamble(text) {
  const body = safe.charCodeAt(text, 0) === 0xfeff ? safe.slice(text, 1) : text;
  return safe.startsWith(body, '#!') ? `//${safe.slice(body, 2)}` : body;
}

function evaluated(run, outcome) {
  if (run.outcome !== null) return;
  if ('thrown' in outcome) fail(run, outcome.thrown);
  else if ('syntax' in outcome) {
    if (!attemptAdapted(run, outcome.syntax)) refuse(run, outcome.syntax);
  }
  else if ('value' in outcome && !wasInterrupted(run)) {
    const text = interrupt.unguarded(() => report.resultText(outcome.value, run.notes));
    const data = report.resultData(outcome.value, run.notes);
    settle(run, { __proto__: null, kind: 'value', text, data });
  } else settle(run, { __proto__: null, kind: 'interrupted' });
}

// Retries a text that V8 refused, before running any of it, because of a name that is
// declared as something else.
function attemptAdapted(run, details) {
  const clash = safe.exec(/^SyntaxError: Identifier '(.+)' has already been declared$/, messageOf(details));
  if (clash === null || run.attempts > ATTEMPTS) return false;
  const isLexical = state.hasLexical(clash[1]);
  if (!isLexical && safe.getOwn(globalThis, clash[1])?.configurable !== false) return false;
  const text = redeclare.adapt(run.text, clash[1], isLexical);
  if (text === null) return false;
  attempt(run, text);
  return true;
}

// Whether the run was signalled although no event has reported it yet: its child got the
// signal too, and the child's end may come before the watcher's message. Not checked for
// a run that was too short to wait for anything.
function wasInterrupted(run) {
  if (run !== current || run.outcome !== null || safe.now() - run.began < WAIT_MS) return false;
  return interrupt.isMeant(run.id);
}

// An error counts even if the last expression had a value: it is only known once the
// microtasks are done.
function fail(run, thrown) {
  if (wasInterrupted(run)) {
    settle(run, { __proto__: null, kind: 'interrupted' });
    return;
  }
  const isCurrent = run === current && (run.outcome === null || run.outcome.kind === 'value');
  const text = interrupt.unguarded(() => report.uncaughtText(thrown));
  streams.write(run, 2, safe.bufferFrom(text));
  if (!isCurrent) return;
  run.outcome = null;
  settle(run, { __proto__: null, kind: 'error', error: report.errorOf(thrown) });
}

function refuse(run, details) {
  const error = report.syntaxErrorOf(details);
  streams.write(run, 2, safe.bufferFrom(report.syntaxText(run.id, details, error)));
  settle(run, { __proto__: null, kind: 'error', error });
}

// The first outcome counts. It is reported when the ticks, microtasks and rejections that
// the run has already queued are done.
function settle(run, outcome) {
  if (run.outcome !== null) return;
  run.outcome = outcome;
  safe.setImmediate(finishCurrent);
}

const finishCurrent = interrupt.guarded(() => {
  if (current !== null && current.outcome !== null) finish(current);
});

// After a signal, from the event loop.
const settled = interrupt.guarded(() => {
  finishCurrent();
  loading.resume();
});

function valueField({ text, data }) {
  return data === null ? { __proto__: null, text } : { __proto__: null, text, data };
}

function finish(run) {
  if (run.leave !== null) run.leave();
  const { outcome } = run;
  const done = {
    __proto__: null,
    op: 'done',
    run: run.id,
    secret,
    exit_code: exitCode(outcome),
    result: outcome.kind === 'value' && outcome.text !== null ? valueField(outcome) : null,
    error: errorField(outcome),
    notes: run.notes,
  };
  clearExitCode();
  if (run.environment !== null) environment.restore(run.environment);
  current = null;
  interrupt.setRun(0);
  try {
    streams.close(run);
  } finally {
    send(done);
  }
  if (waiting.length > 0) start(safe.shift(waiting));
}

function exitCode(outcome) {
  switch (outcome.kind) {
    case 'error':
      return 1;
    case 'exit':
      return outcome.code;
    case 'interrupted':
      return INTERRUPTED;
    default:
      return statusOf(process.exitCode);
  }
}

function clearExitCode() {
  try {
    process.exitCode = undefined;
  } catch {
    // User code has frozen process, so it has not set a code either.
  }
}

function errorField(outcome) {
  if (outcome.kind === 'error') return outcome.error;
  if (outcome.kind !== 'interrupted') return null;
  return { __proto__: null, type: 'Interrupted', message: 'the run was interrupted; the state is kept' };
}

function statusOf(code) {
  return code === undefined || code === null ? 0 : safe.NumberOf(code) & 0xff;
}

// ---- what would end the process, and only ends a run here

// Does not call 'exit' handlers, because the process goes on. They are called when it
// ends.
function exit(code) {
  const run = streams.owner();
  if (code !== undefined) process.exitCode = code;
  const status = statusOf(process.exitCode);
  if (run !== null && run === current) settle(run, { __proto__: null, kind: 'exit', code: status });
  interrupt.terminate();
}

// Node looks up this function by name when nothing has caught an error; the user's
// handlers go first, as they do without us. Returning true keeps the process alive.
function onUncaught(thrown, fromPromise) {
  if (countListeners(process, 'uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()) {
    try {
      if (interrupt.unguarded(() => safe.apply(rethrow, process, [thrown, fromPromise]))) return true;
    } catch (error) {
      blame(error);
      return true;
    }
  }
  blame(thrown);
  cleanUpAfter(thrown, fromPromise);
  return true;
}

// Node's own handler also cleans up after the callback that threw; with a listener it
// lets the process live.
function cleanUpAfter(thrown, fromPromise) {
  const handled = () => {};
  try {
    on(process, 'uncaughtException', handled);
    safe.apply(rethrow, process, [thrown, fromPromise]);
    off(process, 'uncaughtException', handled);
  } catch {
    // User code has frozen process: the process lives, and that is what counts.
  }
}

function blame(thrown) {
  // The evaluation of a run that was interrupted before it began.
  if (thrown?.code === 'ERR_INSPECTOR_NOT_CONNECTED' && report.runNamedBy(thrown) === 0) return;
  const run = streams.owner() ?? current;
  if (run !== null) fail(run, thrown);
}

function endKernel() {
  try {
    safe.apply(leave, process, [0]);
  } finally {
    safe.apply(reallyExit, process, [0]);
  }
}

// ---- start

function installExits() {
  process.exit = exit;
  process._fatalException = interrupt.guarded(onUncaught);
}

// SIGUSR1 would open the inspector on a port that every other program can reach: any
// process that may send a signal would get into the kernel. This is not a listener that
// user code could find or remove; its own listeners are called as usual.
function refuseDebuggers() {
  const { noDeprecation } = process;
  try {
    process.noDeprecation = true;
    const { Signal } = process.binding('signal_wrap');
    debuggers = new Signal();
    debuggers.unref();
    debuggers.onsignal = () => {};
    debuggers.start(signals.SIGUSR1);
  } finally {
    process.noDeprecation = noDeprecation;
  }
}

function serve(directory) {
  const at = (name) => path.join(path.resolve(directory), name);
  control.path = at('ctl');
  reply.path = at('rep');
  usual.code = at('c');
  usual.stdout = at('o');
  usual.stderr = at('e');
  openReply();
  streams.install();
  interrupt.install(
    at('interrupt'),
    () => {
      if (current !== null && current.outcome === null) current.outcome = { __proto__: null, kind: 'interrupted' };
      carry.cancel();
    },
    settled,
    streams.settle,
  );
  refuseDebuggers();
  imports.install();
  installExits();
  carry.install();
  state.install();
  openControl();
  safe.setInterval(() => {}, FOREVER);
  patches.install();
  streams.calibrate();
  send({ __proto__: null, op: 'ready', version: process.version, executable: process.execPath });
}

module.exports = { __proto__: null, serve };
//# sourceURL=node:internal/sessile/kernel

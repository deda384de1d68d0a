'use strict';
// process.stdin, process.stdout, process.stderr and console, separated by run.
//
// While a run is current, descriptors 0, 1 and 2 are its own pipes. What its timers,
// servers and promises print after it has ended is routed by AsyncLocalStorage to a pair
// of descriptors kept for it.
//
// Invariants:
// - bytes are in the pipe when write() returns, so `done` never overtakes them;
// - a pair is kept only for a run that left something alive, and is closed when nothing
//   is left, when its context has been collected, or when too many are kept; runs never
//   keep one pair each for good;
// - user code cannot break a later run by ending or destroying a stream.

const fs = require('node:fs');
const { AsyncLocalStorage } = require('node:async_hooks');
const { Socket } = require('node:net');
const { Writable, Readable } = require('node:stream');
const { Console } = require('node:console');
const safe = require('./safe.js');
const files = require('./files.js');
const descriptors = require('./descriptors.js');
const { guarded, isStarting, awaitWatcher } = require('./interrupt.js');

const { O_WRONLY, O_RDONLY, O_NOCTTY, O_NONBLOCK } = files.constants;
const { isView } = ArrayBuffer;
const activeResources = process.getActiveResourcesInfo;

// Two descriptors each; far below the usual limit of 1024 open files.
const KEPT_LIMIT = 64;
// How late the end of background work is noticed while the kernel is idle.
const SWEEP_MS = 1000;

// Resources that may stay alive for ever without doing anything.
const PASSIVE = { __proto__: null, TCPServerWrap: true, PipeServerWrap: true, FSEventWrap: true, StatWatcher: true, SignalWrap: true };

const storage = new AsyncLocalStorage();
const getStore = safe.uncurry(AsyncLocalStorage.prototype.getStore);
const runIn = safe.uncurry(AsyncLocalStorage.prototype.run);

let current = null;
// A run that is over but still uses 0, 1 and 2.
let parked = null;
// What is alive in an idle kernel: the control channel.
let baseline = 1;
let sweeper = null;
const kept = new safe.Set();
const keptAdd = safe.uncurry(Set.prototype.add);
const keptDelete = safe.uncurry(Set.prototype.delete);
const keptEach = safe.uncurry(Set.prototype.forEach);
const sizeOf = safe.uncurry(safe.getOwn(Set.prototype, 'size').get);

// Maps a store to its run. User code can reach a store, from the async resources that it
// starts, so the store must lead nowhere.
const runs = new WeakMap();
const runOf = safe.uncurry(WeakMap.prototype.get);
const setRunOf = safe.uncurry(WeakMap.prototype.set);

const collected = new FinalizationRegistry(guarded((run) => release(run)));
const watch = safe.uncurry(FinalizationRegistry.prototype.register);

// The run that the executing code belongs to.
function owner() {
  const store = getStore(storage);
  return store === undefined ? current : (runOf(runs, store) ?? current);
}

// Runs `fn` so that everything it starts belongs to `run`. The store is a separate
// object: the run is in `kept`, and only references held by user code may keep the store
// from being collected. So the run forgets it at its end.
function within(run, fn) {
  const store = safe.freeze({ __proto__: null });
  setRunOf(runs, store, run);
  run.store = store;
  runIn(storage, store, fn);
}

function open(run, stdin, stdout, stderr) {
  if (parked !== null) {
    awaitWatcher();
    settle();
  }
  run.paths = ['', stdout, stderr];
  run.fds = [0, 1, 2];
  run.stdin = { fd: descriptors.place(0, stdin), stream: null };
  run.fds[1] = descriptors.place(1, stdout);
  run.fds[2] = descriptors.place(2, stderr);
  if (run.stdin.fd !== 0 || run.fds[1] !== 1 || run.fds[2] !== 2) {
    safe.push(run.notes, 'a standard descriptor was taken by another thread; only JavaScript output is captured in this run');
  }
  run.found = stdin === '/dev/null' ? [] : safe.apply(activeResources, process, []);
  current = run;
}

// Ends the run's use of 0, 1 and 2. If it left something alive, that gets its own pair.
// This comes before the run is reported: pipes that are still held are of no use to the
// next run, and new ones cost the keeper more than everything else.
function close(run) {
  if (run.stdin.stream !== null) retire(run.stdin.stream);
  current = null;
  if (isStarting()) parked = run;
  else leave(run);
}

// The first run is often over before the watcher's thread is up; then 0, 1 and 2 stay as
// they are until it is up, or until the next run needs them.
function settle() {
  if (parked === null) return;
  const run = parked;
  parked = null;
  leave(run);
}

function leave(run) {
  const { store } = run;
  run.store = null;
  if (isAnythingAlive() || run.keepOpen === true) keep(run, store);
  else {
    letGo(run, 1);
    letGo(run, 2);
  }
  if (run.stdin.fd !== 0) descriptors.close(run.stdin.fd);
  for (let fd = 0; fd < 3; fd++) descriptors.placeNull(fd);
  if (sizeOf(kept) > 0) sweep();
}

// Few runs are kept: a registration of each would keep the garbage collector busy.
function keep(run, store) {
  if (store !== null) watch(collected, store, run);
  for (let fd = 1; fd < 3; fd++) {
    if (run.fds[fd] === fd) run.fds[fd] = reopen(run, fd);
  }
  keptAdd(kept, run);
  if (sizeOf(kept) > KEPT_LIMIT) release(leastRecent());
}

// Through /proc, as the keeper may have unlinked the pipe's name by now.
function reopen(run, fd) {
  try {
    return files.open(`/proc/self/fd/${fd}`, O_WRONLY | O_NOCTTY);
  } catch {
    return openAnew(run, fd);
  }
}

function openAnew(run, fd) {
  try {
    // Without a reader this must fail at once instead of waiting for one.
    return files.open(run.paths[fd], O_WRONLY | O_NOCTTY | O_NONBLOCK);
  } catch {
    return -1;
  }
}

function letGo(run, fd) {
  if (run.fds[fd] > 2) descriptors.close(run.fds[fd]);
  run.fds[fd] = -1;
}

function release(run) {
  if (run === null || !keptDelete(kept, run)) return;
  letGo(run, 1);
  letGo(run, 2);
}

function leastRecent() {
  let oldest = null;
  keptEach(kept, (run) => {
    if (oldest === null || run.wrote < oldest.wrote) oldest = run;
  });
  return oldest;
}

function isAnythingAlive() {
  return safe.apply(activeResources, process, []).length > baseline;
}

// Whether only input can make the run go on: everything that it has alive is its stdin,
// or waits for others. What was alive before the run does not count.
function awaitsInput(run) {
  if (run.stdin.stream === null) return false;
  const spare = { __proto__: null, PipeWrap: 1 };
  for (let i = 0; i < run.found.length; i++) spare[run.found[i]] = (spare[run.found[i]] ?? 0) + 1;
  const alive = safe.apply(activeResources, process, []);
  for (let i = 0; i < alive.length; i++) {
    const kind = alive[i];
    if (PASSIVE[kind] === true) continue;
    if (!(spare[kind] > 0)) return false;
    spare[kind]--;
  }
  return true;
}

function calibrate() {
  baseline = safe.apply(activeResources, process, []).length;
}

function sweep() {
  if (current === null && !isAnythingAlive()) {
    keptEach(kept, (run) => {
      if (run.keepOpen !== true) release(run);
    });
  }
  if (sizeOf(kept) === 0 || sweeper !== null) return;
  sweeper = safe.setTimeout(sweepAgain, SWEEP_MS);
  sweeper.unref();
}

const sweepAgain = guarded(() => {
  sweeper = null;
  sweep();
});

let writes = 0;

// Writes to stdout (1) or stderr (2) of `run`. If the pipes of that run are closed,
// writes to the current one, since that one has made it print.
function write(run, fd, buffer) {
  let to = run;
  if (to === null || to.fds[fd] === -1) to = current;
  if (to === null) return;
  to.wrote = ++writes;
  if (descriptors.writeAll(to.fds[fd], buffer)) return;
  // User code closed the descriptor: the pipe itself is still there.
  if (to.reopened[fd] === true) return;
  to.reopened[fd] = true;
  const again = openAnew(to, fd);
  if (again === -1) return;
  to.fds[fd] = again;
  descriptors.writeAll(again, buffer);
}

// The descriptor for 1 or 2 in the run that is executing.
function descriptorFor(fd) {
  const run = owner();
  if (run === null || run === current || run.fds[fd] === -1) return fd;
  return run.fds[fd];
}

// Writes without the machinery of Writable, whose state would stay `writing` for good if
// the user's code were terminated in the middle of a write.
class Output extends Writable {
  constructor(fd) {
    super({ emitClose: false });
    this.fd = fd;
    this._type = 'pipe';
    this._isStdio = true;
    this.destroySoon = this.destroy;
  }

  write(chunk, encoding, done) {
    if (typeof encoding === 'function') return this.write(chunk, null, encoding);
    const bytes = bytesOf(chunk, encoding ?? 'utf8');
    // Anything other than text or bytes gets Node's own error.
    if (bytes === null) return super.write(chunk, encoding, done);
    write(owner(), this.fd, bytes);
    if (typeof done === 'function') safe.nextTick(done, null);
    return true;
  }

  _write(chunk, encoding, done) {
    write(owner(), this.fd, chunk);
    done();
  }

  // An ended stream would be lost for every later run.
  end(chunk, encoding, done) {
    if (typeof chunk === 'function') return this.end(null, null, chunk);
    if (typeof encoding === 'function') return this.end(chunk, null, encoding);
    if (chunk !== null && chunk !== undefined) this.write(chunk, encoding ?? undefined);
    process.nextTick(() => {
      this.emit('finish');
      if (typeof done === 'function') done();
    });
    return this;
  }

  _destroy(error, done) {
    done(error);
    this._undestroy();
    process.nextTick(() => this.emit('close'));
  }
}

function bytesOf(chunk, encoding) {
  if (typeof chunk === 'string') return safe.bufferFrom(chunk, encoding);
  if (isView(chunk)) return safe.bufferFrom(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  return null;
}

function inputOf(run) {
  if (run === null) return ended();
  run.stdin.stream ??= openInput(run.stdin.fd);
  return run.stdin.stream;
}

function openInput(fd) {
  let stream;
  if (files.fstat(fd).isFIFO()) {
    // A separate file description: reading must be non-blocking here, and must not become
    // so for children that inherit descriptor 0.
    const own = files.open(`/proc/self/fd/${fd}`, O_RDONLY | O_NOCTTY | O_NONBLOCK);
    stream = new Socket({ fd: own, readable: true, writable: false, manualStart: true });
  } else {
    stream = new fs.ReadStream(null, { fd, autoClose: false });
  }
  stream.fd = 0;
  return stream;
}

function ended() {
  const stream = new Readable({ read() {} });
  stream.push(null);
  stream.fd = 0;
  return stream;
}

function retire(stream) {
  try {
    stream.on('error', () => {});
    stream.destroy();
  } catch {
    // A stream that user code has tampered with stays as it is.
  }
}

function install() {
  const stdout = new Output(1);
  const stderr = new Output(2);
  const getter = (name, get) => safe.defineProperty(process, name, { get, configurable: true, enumerable: true });
  getter('stdout', () => stdout);
  getter('stderr', () => stderr);
  getter('stdin', () => inputOf(current));
  // The methods of the global console also report to a connected inspector,
  // which would keep every argument ever printed alive.
  const own = new Console({ stdout, stderr });
  for (const key of safe.ownKeys(own)) {
    if (typeof own[key] === 'function') console[key] = own[key];
  }
}

module.exports = { __proto__: null, install, within, owner, open, close, settle, write, calibrate, awaitsInput, descriptorFor };
//# sourceURL=node:internal/sessile/streams

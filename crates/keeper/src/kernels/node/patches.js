'use strict';
// The few functions of Node that have to know about the kernel:
// - fs.close* may not close what the event loop and the keeper's channels use (a closed
//   epoll descriptor aborts the process), and notes when one of 0, 1, 2 was closed;
// - fs.write* to 1 or 2, and children that inherit them, from a callback of a run that
//   has ended, belong to that run and not to the current one.
// Code of the current run is not affected.

const fs = require('node:fs');
const childProcess = require('node:child_process');
const { syncBuiltinESMExports } = require('node:module');
const safe = require('./safe.js');
const descriptors = require('./descriptors.js');
const streams = require('./streams.js');

// Never an open descriptor: closing it returns the error for a closed one.
const CLOSED = 0x7fffffff;
// The loops are created early and so have low numbers; above this number, close costs
// nothing.
const LOOP_FDS = 64;
const owned = { __proto__: null };

// Protects what is open before any user code.
function protect() {
  for (const name of fs.readdirSync('/proc/self/fd')) {
    // Not the descriptor used to read the directory: it is closed again.
    if (name > 2 && fs.existsSync(`/proc/self/fd/${name}`)) owned[name] = true;
  }
}

function closable(fd) {
  if (owned[fd] === true) return CLOSED;
  // The watcher's loop starts later than `protect` runs.
  if (fd > 2 && fd <= LOOP_FDS && descriptors.isLoops(fd)) return CLOSED;
  if (fd === 0 || fd === 1 || fd === 2) descriptors.touch(fd);
  return fd;
}

const writable = (fd) => (fd === 1 || fd === 2 ? streams.descriptorFor(fd) : fd);

function wrapFirst(object, key, map) {
  const original = object[key];
  const wrapper = {
    [key](...args) {
      args[0] = map(args[0]);
      return safe.apply(original, this, args);
    },
  }[key];
  safe.defineProperty(wrapper, 'length', { value: original.length });
  // util.promisify and custom symbols live on the function itself.
  for (const symbol of Object.getOwnPropertySymbols(original)) {
    safe.defineProperty(wrapper, symbol, safe.getOwn(original, symbol));
  }
  object[key] = wrapper;
}

// Where a child's descriptors come from, with 1 and 2 as in the run.
function inherited(stdio) {
  if (stdio === 'inherit') return inherited([0, 1, 2]);
  if (!safe.isArray(stdio)) return stdio;
  const out = [];
  for (let i = 0; i < stdio.length; i++) {
    let entry = stdio[i];
    if (entry === 'inherit') entry = i;
    else if (entry === process.stdout) entry = 1;
    else if (entry === process.stderr) entry = 2;
    else if (entry === process.stdin) entry = 0;
    safe.push(out, writable(entry));
  }
  return out;
}

function withInherited(options) {
  if (options === null || typeof options !== 'object' || options.stdio === undefined) return options;
  return { ...options, stdio: inherited(options.stdio) };
}

// The options are the last argument in all three synchronous forms.
function wrapSync(key) {
  const original = childProcess[key];
  const wrapper = {
    [key](...args) {
      for (let i = 1; i < args.length; i++) {
        if (!safe.isArray(args[i])) args[i] = withInherited(args[i]);
      }
      return safe.apply(original, this, args);
    },
  }[key];
  safe.defineProperty(wrapper, 'length', { value: original.length });
  childProcess[key] = wrapper;
}

function install() {
  protect();
  wrapFirst(fs, 'close', closable);
  wrapFirst(fs, 'closeSync', closable);
  for (const key of ['write', 'writeSync', 'writev', 'writevSync']) wrapFirst(fs, key, writable);
  // spawn, exec, execFile and fork all go through this.
  wrapFirst(childProcess.ChildProcess.prototype, 'spawn', withInherited);
  for (const key of ['spawnSync', 'execSync', 'execFileSync']) wrapSync(key);
  syncBuiltinESMExports();
}

module.exports = { __proto__: null, install };
//# sourceURL=node:internal/sessile/patches

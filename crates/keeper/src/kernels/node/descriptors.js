'use strict';
// Descriptors 0, 1 and 2, and writing to pipes.
//
// Node has no dup2, but open() returns the lowest free descriptor, so closing
// 1 and opening a path puts that path at 1: children, native addons and
// fs.writeSync(1) then reach the run's own pipe with nothing patched.
//
// Invariant: after `place`, the descriptor refers to the requested path, or `place` has
// returned which other descriptor does. Another thread (libuv's pool, a Worker) may open
// a file in the instant between close and open and so get the number; that file is then
// left alone.

const safe = require('./safe.js');
const files = require('./files.js');

const { O_NOCTTY, O_RDONLY, O_WRONLY } = files.constants;

// How long to wait for a full non-blocking pipe to drain before the next attempt.
const DRAIN_MS = 1;
const nap = new safe.Int32Array(new safe.SharedArrayBuffer(4));

const FAILED = -1;
const NULL = '/dev/null';
// Whether /dev/null is at 0, 1, 2; a stat in each run would cost more than everything
// else.
const isNull = [false, false, false];
const isTouched = [false, false, false];

// The file that took one of 0, 1, 2 from us, by descriptor: {dev, ino}.
const taken = { __proto__: null };

function close(fd) {
  try {
    files.close(fd);
  } catch {
    // Already closed by user code, which has the same effect.
  }
}

function isStillTaken(fd) {
  const thief = taken[fd];
  if (thief === undefined) return false;
  try {
    const now = files.fstat(fd);
    if (now.ino === thief.ino && now.dev === thief.dev) return true;
  } catch {
    // The other thread has closed it: the number is free again.
  }
  delete taken[fd];
  return false;
}

function noteThief(fd) {
  try {
    const { dev, ino } = files.fstat(fd);
    taken[fd] = { dev, ino };
  } catch {
    // Gone again already.
  }
}

// Notes that user code has closed `fd`, and that it or another thread may have opened
// something else there.
function touch(fd) {
  isNull[fd] = false;
  isTouched[fd] = true;
}

// Descriptors without a name in the file system belong to an event loop; user code cannot
// have opened one by number, and closing one aborts the process.
function isLoops(fd) {
  try {
    return safe.exec(/^(?:anon_inode|pipe):/, files.readlink(`/proc/self/fd/${fd}`)) !== null;
  } catch {
    return false;
  }
}

function checkTouched(fd) {
  isTouched[fd] = false;
  if (isLoops(fd)) noteThief(fd);
}

// Puts `path` at descriptor `fd` (0, 1 or 2) and returns the descriptor that
// holds it: `fd`, or a higher one if another thread was faster.
function place(fd, path) {
  // A terminal must not become our controlling terminal: its hang-up would end us too.
  const flags = (fd === 0 ? O_RDONLY : O_WRONLY) | O_NOCTTY;
  if (isTouched[fd]) checkTouched(fd);
  if (isStillTaken(fd)) return files.open(path, flags);
  // Most runs have no input: 0 stays as it was.
  if (path === NULL && isNull[fd]) return fd;
  isNull[fd] = false;
  close(fd);
  let got = files.open(path, flags);
  while (got < fd) got = fillBelow(path, flags);
  if (got !== fd) noteThief(fd);
  else if (path === NULL) isNull[fd] = true;
  return got;
}

function placeNull(fd) {
  const got = place(fd, NULL);
  if (got > 2) close(got);
}

// A lower standard descriptor was free (user code closed it); it keeps what was opened
// there, since the next open() would get it otherwise.
function fillBelow(path, flags) {
  return files.open(path, flags);
}

// Writes all of `buffer`. Blocks while the pipe is full: the keeper drains it. Returns
// false if it has no reader any more, or the descriptor is not open.
function writeAll(fd, buffer) {
  let at = 0;
  const end = safe.lengthOf(buffer);
  while (at < end) {
    const count = attempt(fd, buffer, at, end - at);
    if (count === FAILED) return false;
    at += count;
  }
  return true;
}

// Does the same for a text with one character per byte.
function writeText(fd, text) {
  let rest = text;
  while (rest !== '') {
    const count = attempt(fd, rest, null, 'latin1');
    if (count === FAILED) return false;
    rest = safe.slice(rest, count);
  }
  return true;
}

function attempt(fd, data, from, length) {
  try {
    return files.write(fd, data, from, length);
  } catch (error) {
    if (error.code === 'EINTR') return 0;
    // A child that shares the pipe may have made it non-blocking.
    if (error.code !== 'EAGAIN') return FAILED;
    safe.AtomicsWait(nap, 0, 0, DRAIN_MS);
    return 0;
  }
}

module.exports = { __proto__: null, place, placeNull, touch, isLoops, close, writeAll, writeText };
//# sourceURL=node:internal/sessile/descriptors

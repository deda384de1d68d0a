'use strict';
// The driver's own use of files.
//
// Node's functions call native ones by name, in an object that user code gets from
// process.binding('fs'); programs that mock a file system replace them there. So that
// object gives the driver the native function, and all other code what was last put
// there.

const fs = require('node:fs');
const safe = require('./safe.js');

// What the functions below call, in any version of Node.
const NATIVE = ['open', 'openFileHandle', 'close', 'fstat', 'lstat', 'stat', 'read', 'readlink', 'readFileUtf8', 'writeString', 'writeBuffer'];

// Whether the driver is using it. Not a count: a write that is terminated half-way must
// not leave it raised for good.
let isOurs = false;

function nativeFunctions() {
  try {
    return safe.quietly(() => process.binding('fs'));
  } catch {
    return null;
  }
}

function protect(binding, name) {
  const native = binding[name];
  if (typeof native !== 'function') return;
  let found = native;
  safe.defineProperty(binding, name, {
    __proto__: null,
    get: () => (isOurs ? native : found),
    set(value) {
      found = value;
    },
    enumerable: true,
    configurable: false,
  });
}

function ours(fn) {
  return (a, b, c, d) => {
    isOurs = true;
    try {
      return fn(a, b, c, d);
    } finally {
      isOurs = false;
    }
  };
}

const binding = nativeFunctions();
if (binding !== null) for (const name of NATIVE) protect(binding, name);

const { readFileSync } = fs;

module.exports = {
  __proto__: null,
  constants: fs.constants,
  open: ours(fs.openSync),
  close: ours(fs.closeSync),
  fstat: ours(fs.fstatSync),
  readlink: ours(fs.readlinkSync),
  write: ours(fs.writeSync),
  readText: ours((path) => readFileSync(path, 'utf8')),
};
//# sourceURL=node:internal/sessile/files

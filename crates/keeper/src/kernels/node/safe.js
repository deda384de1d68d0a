'use strict';
// The built-ins the driver relies on, captured before any user code runs.
//
// Invariant: a user who patches or deletes globals (JSON, Promise, methods of
// Array.prototype) changes their own world, not how a run is started, ended
// and reported. Nothing here may be looked up again later by name.

const uncurry = Function.prototype.bind.bind(Function.prototype.call);

const accessor = (name) => uncurry(Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), name).get);

const { setPrototypeOf } = Object;
const exec = uncurry(RegExp.prototype.exec);
const BEYOND_ASCII = /[^\0-\x7f]/;
const { escape: latin1Escapes, unescape: asLatin1, encodeURIComponent: asEscapes, decodeURIComponent: fromEscapes } = globalThis;

module.exports = {
  __proto__: null,
  uncurry,
  Error,
  Map,
  Set,
  JSONParse: JSON.parse,
  JSONStringify: JSON.stringify,
  StringOf: String,
  NumberOf: Number,
  apply: Reflect.apply,
  ownKeys: Reflect.ownKeys,
  getOwn: Object.getOwnPropertyDescriptor,
  getPrototypeOf: Object.getPrototypeOf,
  setPrototypeOf,
  defineProperty: Object.defineProperty,
  defineOwn: Reflect.defineProperty,
  freeze: Object.freeze,
  isArray: Array.isArray,
  then: uncurry(Promise.prototype.then),
  push: uncurry(Array.prototype.push),
  shift: uncurry(Array.prototype.shift),
  join: uncurry(Array.prototype.join),
  slice: uncurry(String.prototype.slice),
  indexOf: uncurry(String.prototype.indexOf),
  lastIndexOf: uncurry(String.prototype.lastIndexOf),
  startsWith: uncurry(String.prototype.startsWith),
  includes: uncurry(String.prototype.includes),
  latin1Slice: uncurry(Buffer.prototype.latin1Slice),
  split: uncurry(String.prototype.split),
  repeat: uncurry(String.prototype.repeat),
  charCodeAt: uncurry(String.prototype.charCodeAt),
  exec,
  sourceOf: uncurry(Function.prototype.toString),
  bufferFrom: Buffer.from,
  bufferText: uncurry(Buffer.prototype.toString),
  // For any typed array, whatever its own properties say.
  memoryOf: accessor('buffer'),
  offsetOf: accessor('byteOffset'),
  lengthOf: accessor('byteLength'),
  bufferAlloc: Buffer.alloc,
  subarray: uncurry(Buffer.prototype.subarray),
  fill: uncurry(Uint8Array.prototype.fill),
  now: Date.now,
  nextTick: process.nextTick,
  setImmediate,
  setTimeout,
  setInterval,
  clearTimeout,
  Int32Array,
  SharedArrayBuffer,
  AtomicsLoad: Atomics.load,
  AtomicsStore: Atomics.store,
  AtomicsWait: Atomics.wait,
  AtomicsNotify: Atomics.notify,

  // Text as UTF-8, one character per byte, and back. Without a Buffer, whose methods look
  // up others by name.
  toBytes(text) {
    return exec(BEYOND_ASCII, text) === null ? text : asLatin1(asEscapes(text));
  },

  fromBytes(bytes) {
    return exec(BEYOND_ASCII, bytes) === null ? bytes : fromEscapes(latin1Escapes(bytes));
  },

  // Runs `fn` without Node's deprecation warnings.
  quietly(fn) {
    const { noDeprecation } = process;
    process.noDeprecation = true;
    try {
      return fn();
    } finally {
      if (noDeprecation === undefined) delete process.noDeprecation;
      else process.noDeprecation = noDeprecation;
    }
  },

  // A list whose JSON cannot be changed by a toJSON on Array.prototype.
  list() {
    return setPrototypeOf([], null);
  },
};
//# sourceURL=node:internal/sessile/safe

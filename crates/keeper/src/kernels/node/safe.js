'use strict';
// The built-ins the driver relies on, captured before any user code runs.
//
// Invariant: a user who patches or deletes globals (JSON, Promise, methods of
// Array.prototype) changes their own world, not how a run is started, ended
// and reported. Nothing here may be looked up again later by name.

const uncurry = Function.prototype.bind.bind(Function.prototype.call);

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
  setPrototypeOf: Object.setPrototypeOf,
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
  split: uncurry(String.prototype.split),
  repeat: uncurry(String.prototype.repeat),
  charCodeAt: uncurry(String.prototype.charCodeAt),
  exec: uncurry(RegExp.prototype.exec),
  sourceOf: uncurry(Function.prototype.toString),
  bufferFrom: Buffer.from,
  bufferAlloc: Buffer.alloc,
  subarray: uncurry(Buffer.prototype.subarray),
  fill: uncurry(Uint8Array.prototype.fill),
  now: Date.now,
  nextTick: process.nextTick,
  setImmediate,
  setTimeout,
  clearTimeout,
  Int32Array,
  SharedArrayBuffer,
  AtomicsLoad: Atomics.load,
  AtomicsStore: Atomics.store,
  AtomicsWait: Atomics.wait,
  AtomicsNotify: Atomics.notify,

  // A list whose JSON cannot be changed by a toJSON on Array.prototype.
  list() {
    return Object.setPrototypeOf([], null);
  },
};
//# sourceURL=node:internal/sessile/safe

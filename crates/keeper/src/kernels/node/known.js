'use strict';
// Values that every kernel has by itself, so that a dump only needs to name them: the
// objects of the language and of Node, by their path from the global object, and the
// exports of modules, by the module.
//
// The built-ins are listed before any user code runs: one that is replaced later is not
// taken for the original, nor the new one for a built-in. Properties are read as
// descriptors only: no getter is called, and nothing is loaded that Node loads on first
// use.

const fs = require('node:fs');
const { isProxy } = require('node:util').types;
const safe = require('./safe.js');
const imports = require('./imports.js');

const NAMES = safe.split(
  'Object Function Array Number Boolean String Symbol BigInt Date Promise RegExp Error AggregateError EvalError RangeError ' +
    'ReferenceError SyntaxError TypeError URIError JSON Math Intl ArrayBuffer SharedArrayBuffer DataView Atomics Int8Array ' +
    'Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array Float16Array Float32Array Float64Array ' +
    'BigInt64Array BigUint64Array Map Set WeakMap WeakSet WeakRef FinalizationRegistry Iterator Proxy Reflect parseInt ' +
    'parseFloat isNaN isFinite decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape eval console ' +
    'process globalThis Buffer URL URLSearchParams TextEncoder TextDecoder AbortController AbortSignal Event EventTarget ' +
    'setTimeout setInterval setImmediate clearTimeout clearInterval clearImmediate queueMicrotask structuredClone WebAssembly',
  ' ',
);
// Too large below them, or loaded on access.
const LEAVES = { __proto__: null, process: true, globalThis: true, WebAssembly: true };
const GLOBAL_DEPTH = 2;
const EXPORT_DEPTH = 2;
// An export with more below it is data, not an interface.
const EXPORTS_LIMIT = 5000;

const get = safe.uncurry(Map.prototype.get);
const set = safe.uncurry(Map.prototype.set);
const has = safe.uncurry(Map.prototype.has);

// Node's own getter, through which most code uses the module of this name.
const filePromises = safe.uncurry(Object.getOwnPropertyDescriptor(fs, 'promises').get);
const PROMISES = { __proto__: null, how: 'require', name: 'node:fs/promises', options: undefined };

const builtins = new safe.Map();
const wellKnown = new safe.Map();
const originals = safe.list();

const isCore = (module) => module === null || safe.startsWith(module.name, 'node:');
const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';

function install() {
  for (const key of safe.ownKeys(Symbol)) {
    const { value } = safe.getOwn(Symbol, key);
    if (typeof value === 'symbol') set(wellKnown, value, key);
  }
  for (const name of NAMES) {
    const value = original(name);
    originals[originals.length] = { __proto__: null, name, value };
    if (isObject(value)) list(builtins, value, null, null, name, LEAVES[name] ? 0 : GLOBAL_DEPTH);
  }
  listHidden();
}

// Node has these two behind its own getters.
function original(name) {
  return name === 'process' || name === 'Buffer' ? globalThis[name] : safe.getOwn(globalThis, name)?.value;
}

// Built-ins without a path from the global object.
function listHidden() {
  const samples = { __proto__: null, '%TypedArray%': Object.getPrototypeOf(Uint8Array) };
  for (const name of safe.ownKeys(samples)) list(builtins, samples[name], null, null, name, 1);
}

// `parent` is the entry of the object that has the value at `key`; a path is built only
// on request.
function list(map, value, module, parent, key, depth) {
  if (has(map, value)) return;
  const entry = { __proto__: null, module, parent, key };
  if (isFixed(value, entry)) set(map, value, entry);
  if (depth === 0 || isProxy(value)) return;
  const keys = safe.ownKeys(value);
  if (keys.length > EXPORTS_LIMIT) return;
  for (let i = 0; i < keys.length; i++) {
    const below = typeof keys[i] === 'string' ? exportOf(value, keys[i]) : undefined;
    if (isObject(below)) list(map, below, module, entry, keys[i], depth - 1);
  }
}

// Whether a value can be named. Data that a user's module exports may have changed since,
// and is carried by its value.
function isFixed(value, { module, parent, key }) {
  return isCore(module) || parent === null || typeof value === 'function' || key === 'prototype';
}

// An export of a module that is still being evaluated throws.
function exportOf(object, key) {
  try {
    return safe.getOwn(object, key)?.value;
  } catch {
    return undefined;
  }
}

// The keys that lead to an entry from the global object, or from its module.
function pathOf(entry) {
  const path = safe.list();
  let length = 0;
  for (let at = entry; at !== null && at.key !== null; at = at.parent) length++;
  for (let at = entry; length > 0; at = at.parent) path[--length] = at.key;
  return path;
}

// What can be named in one dump. `find` returns an entry, whose `module` is null for a
// built-in.
class Known {
  constructor() {
    this.exports = new safe.Map();
    imports.eachModule((value, module) => {
      if (isObject(value) && !isProxy(value)) list(this.exports, value, module, null, null, EXPORT_DEPTH);
    });
    if (has(this.exports, fs)) list(this.exports, filePromises(fs), PROMISES, null, null, 1);
    const own = imports.ownGlobals();
    for (let i = 0; i < own.length; i++) set(this.exports, own[i].value, { __proto__: null, module: null, parent: null, key: own[i].name });
  }

  find(value) {
    return get(builtins, value) ?? get(this.exports, value) ?? null;
  }
}

const symbolName = (symbol) => get(wellKnown, symbol) ?? null;

// Names of built-ins to which user code has assigned another value.
function replaced() {
  const names = safe.list();
  for (let i = 0; i < originals.length; i++) {
    const found = safe.getOwn(globalThis, originals[i].name);
    if (found?.value !== undefined && found.value !== originals[i].value) names[names.length] = originals[i].name;
  }
  return names;
}

function builtin(name) {
  if (name === '%TypedArray%') return safe.getPrototypeOf(safe.Int32Array);
  for (let i = 0; i < originals.length; i++) if (originals[i].name === name) return originals[i].value;
  return undefined;
}

// The value at a path in this kernel, or undefined.
function follow(start, path) {
  let value = start;
  for (let i = 0; i < path.length; i++) {
    const first = i === 0 && start === globalThis ? builtin(path[0]) : undefined;
    if (first !== undefined) value = first;
    else value = isObject(value) && !isProxy(value) ? exportOf(value, path[i]) : undefined;
  }
  return value;
}

module.exports = { __proto__: null, install, Known, pathOf, follow, replaced, isCore, isObject, symbolName };
//# sourceURL=node:internal/sessile/known

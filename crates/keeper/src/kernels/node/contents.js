'use strict';
// The contents of objects of each kind, and which of their properties are carried. The
// counterpart of `graph`, which handles what all objects have in common.

const { types } = require('node:util');
const safe = require('./safe.js');
const { KIND, SLOT, href, viewOf } = require('./kinds.js');

const getter = (prototype, key) => safe.uncurry(Object.getOwnPropertyDescriptor(prototype, key).get);
const TypedArray = Object.getPrototypeOf(Uint8Array.prototype);
const typed = { buffer: getter(TypedArray, 'buffer'), offset: getter(TypedArray, 'byteOffset'), length: getter(TypedArray, 'length') };
const view = {
  buffer: getter(DataView.prototype, 'buffer'),
  offset: getter(DataView.prototype, 'byteOffset'),
  length: getter(DataView.prototype, 'byteLength'),
};
// Missing in Node 18.
const isResizable = 'resizable' in ArrayBuffer.prototype ? getter(ArrayBuffer.prototype, 'resizable') : () => false;
const timeOf = safe.uncurry(Date.prototype.getTime);
const sourceOf = getter(RegExp.prototype, 'source');
const FLAGS = [
  ['d', 'hasIndices'],
  ['g', 'global'],
  ['i', 'ignoreCase'],
  ['m', 'multiline'],
  ['s', 'dotAll'],
  ['u', 'unicode'],
  ['v', 'unicodeSets'],
  ['y', 'sticky'],
].filter(([, name]) => name in RegExp.prototype);
const flagGetters = FLAGS.map(([letter, name]) => ({ letter, get: getter(RegExp.prototype, name) }));
const eachEntry = safe.uncurry(Map.prototype.forEach);
const eachMember = safe.uncurry(Set.prototype.forEach);
const BOXES = [
  [types.isNumberObject, safe.uncurry(Number.prototype.valueOf)],
  [types.isStringObject, safe.uncurry(String.prototype.valueOf)],
  [types.isBooleanObject, safe.uncurry(Boolean.prototype.valueOf)],
  [types.isBigIntObject, safe.uncurry(BigInt.prototype.valueOf)],
  [types.isSymbolObject, safe.uncurry(Symbol.prototype.valueOf)],
];
const { Uint8Array: Bytes } = globalThis;
const { isProxy } = types;
const hasOwn = safe.uncurry(Object.prototype.hasOwnProperty);
const isIndex = (key) => typeof key === 'string' && safe.exec(/^(?:0|[1-9]\d*)$/, key) !== null && +key < 2 ** 32 - 1;
const symbolsOf = Object.getOwnPropertySymbols;
// Number of elements up to which listing the keys costs nothing.
const FEW = 1000;
// Number of elements that are checked to see whether an array is mostly holes.
const SAMPLES = 256;

let refuse = null;

// Set by `graph`, which knows how to report an obstacle.
function install(obstacle) {
  refuse = obstacle;
}

// Writes what is needed to create the object.
function make(graph, value, kind) {
  const { writer } = graph;
  if (kind === KIND.ARRAY) writer.count(value.length);
  else if (kind === KIND.DATE) writer.double(timeOf(value));
  else if (kind === KIND.REGEXP) {
    writer.string(sourceOf(value));
    writer.string(flagsOf(value));
  } else if (kind === KIND.BUFFER) {
    if (isResizable(value)) throw refuse('a resizable buffer cannot be carried');
    writer.block(new Bytes(value));
  } else if (kind === KIND.VIEW) makeView(graph, value);
  else if (kind === KIND.BOXED) graph.slot(unbox(value));
  else if (kind === KIND.URL) writer.string(href(value));
}

function makeView(graph, value) {
  const number = viewOf(value);
  const read = types.isDataView(value) ? view : typed;
  if (number === -1) throw refuse('a view of an unknown kind cannot be carried');
  graph.writer.byte(number);
  graph.slot(read.buffer(value));
  graph.writer.count(read.offset(value));
  graph.writer.count(read.length(value));
}

function flagsOf(value) {
  let flags = '';
  for (let i = 0; i < flagGetters.length; i++) if (flagGetters[i].get(value)) flags += flagGetters[i].letter;
  return flags;
}

function unbox(value) {
  for (let i = 0; i < BOXES.length; i++) if (BOXES[i][0](value)) return BOXES[i][1](value);
  throw refuse('a boxed value of an unknown kind cannot be carried');
}

// Writes what the object holds besides properties.
function fill(graph, value, kind, isSparse) {
  if (kind === KIND.ARRAY && !isSparse) fillArray(graph, value);
  else if (kind === KIND.MAP || kind === KIND.SET) fillEntries(graph, value, kind);
  else if (kind === KIND.REGEXP) graph.slot(safe.getOwn(value, 'lastIndex').value);
  else if (kind === KIND.ERROR) graph.slot(stackOf(value));
  else if (kind === KIND.FUNCTION) {
    const prototype = safe.getOwn(value, 'prototype');
    const isMade = prototype !== undefined && safe.exec(/^function\s*[^\s*]/, safe.sourceOf(value)) !== null;
    graph.at('prototype', isMade ? prototype.value : undefined);
  } else if (kind === KIND.CLASS || kind === KIND.PROTOTYPE) fillMembers(graph, value, kind);
}

// The keys that must come with the source: a computed key may mean something else when
// the class is created again.
function fillMembers(graph, value, kind) {
  const owner = kind === KIND.CLASS ? value : safe.getOwn(value, 'constructor').value;
  const all = safe.ownKeys(value);
  const keys = safe.list();
  for (let i = 0; i < all.length; i++) {
    if (all[i] !== 'constructor' && isMember(owner, safe.getOwn(value, all[i]))) keys[keys.length] = all[i];
  }
  graph.writer.count(keys.length);
  for (let i = 0; i < keys.length; i++) graph.key(keys[i]);
}

function fillArray(graph, value) {
  const { length } = value;
  for (let i = 0; i < length; i++) {
    graph.step = i;
    if (hasOwn(value, i)) graph.slot(value[i]);
    else graph.writer.byte(SLOT.HOLE);
  }
}

function fillEntries(graph, value, kind) {
  const list = safe.list();
  const add = (item) => {
    list[list.length] = item;
  };
  if (kind === KIND.MAP) {
    eachEntry(value, (item, key) => {
      add(key);
      add(item);
    });
  } else eachMember(value, add);
  graph.writer.count(list.length);
  const size = kind === KIND.MAP ? 2 : 1;
  for (let i = 0; i < list.length; i++) {
    const word = size === 1 ? 'member' : i % 2 === 0 ? 'key' : 'value';
    if (typeof list[i] === 'object' || typeof list[i] === 'function') graph.step = { text: `<${word} ${(i - (i % size)) / size}>` };
    graph.slot(list[i]);
  }
}

// ---- errors

let stacksAreQuiet = false;

// Runs `fn` while an error's stack can be read without calling a user's function. V8
// builds a stack when it is first read.
function withQuietStacks(fn) {
  const { Error } = safe;
  const before = safe.getOwn(Error, 'prepareStackTrace');
  try {
    safe.defineProperty(Error, 'prepareStackTrace', { value: undefined, configurable: true, writable: true });
    stacksAreQuiet = safe.getOwn(globalThis, 'Error')?.value === Error;
  } catch {
    stacksAreQuiet = before === undefined;
  }
  try {
    return fn();
  } finally {
    stacksAreQuiet = false;
    try {
      if (before === undefined) delete Error.prepareStackTrace;
      else safe.defineProperty(Error, 'prepareStackTrace', before);
    } catch {
      // Frozen by user code: then it was not changed above either.
    }
  }
}

function stackOf(error) {
  if (!stacksAreQuiet || !isNamedQuietly(error, 'name') || !isNamedQuietly(error, 'message')) {
    throw refuse('an error whose stack cannot be read without running code');
  }
  const found = safe.getOwn(error, 'stack');
  if (found === undefined) return undefined;
  if ('value' in found) return typeof found.value === 'string' ? found.value : undefined;
  if (found.get === undefined || !safe.includes(safe.sourceOf(found.get), '[native code]')) throw refuse('an error with a stack of its own making');
  const stack = safe.apply(found.get, error, []);
  return typeof stack === 'string' ? stack : undefined;
}

// The first lines of a stack contain the error's name and message.
function isNamedQuietly(error, key) {
  for (let object = error; object !== null; object = safe.getPrototypeOf(object)) {
    if (isProxy(object)) return false;
    const found = safe.getOwn(object, key);
    if (found !== undefined) return 'value' in found && (typeof found.value !== 'object' || found.value === null) && typeof found.value !== 'function';
  }
  return true;
}

// ---- properties

const OF_FUNCTIONS = { __proto__: null, length: true, prototype: true, arguments: true, caller: true };

// The keys of the properties that are carried as properties.
function keysOf(graph, value, kind) {
  const all = kind === KIND.ARRAY || kind === KIND.VIEW ? namedKeys(graph, value, kind) : safe.ownKeys(value);
  if (kind === KIND.OBJECT || kind === KIND.MAP || kind === KIND.SET || kind === KIND.DATE || kind === KIND.BUFFER) return all;
  const keys = safe.list();
  for (let i = 0; i < all.length; i++) if (isCarried(graph, value, kind, all[i])) keys[keys.length] = all[i];
  return keys;
}

// The keys that are not elements. Listing all keys would create a string for each number:
// that takes long, and fails for tens of millions.
function namedKeys(graph, value, kind) {
  const length = kind === KIND.ARRAY ? value.length : types.isDataView(value) ? 0 : typed.length(value);
  if (length > FEW) {
    const keys = graph.sources.names(value);
    const symbols = symbolsOf(value);
    for (let i = 0; i < symbols.length; i++) keys[keys.length] = symbols[i];
    return keys;
  }
  const all = safe.ownKeys(value);
  const keys = safe.list();
  for (let i = 0; i < all.length; i++) if (!isIndex(all[i])) keys[keys.length] = all[i];
  return keys;
}

function isCarried(graph, value, kind, key) {
  switch (kind) {
    case KIND.ARRAY:
      return key !== 'length';
    case KIND.REGEXP:
      return key !== 'lastIndex';
    case KIND.ERROR:
      return key !== 'stack';
    case KIND.BOXED:
      return !(types.isStringObject(value) && (key === 'length' || isIndex(key)));
    case KIND.URL:
      return typeof key !== 'symbol';
    case KIND.FUNCTION:
      return OF_FUNCTIONS[key] !== true;
    case KIND.CLASS:
      return OF_FUNCTIONS[key] !== true && !isMember(value, safe.getOwn(value, key));
    case KIND.PROTOTYPE:
      return key !== 'constructor' && !isMember(safe.getOwn(value, 'constructor').value, safe.getOwn(value, key));
    default:
      return true;
  }
}

// Whether a property comes with the class's own source.
function isMember(owner, found) {
  const fn = found.value ?? found.get ?? found.set;
  return typeof fn === 'function' && !isProxy(fn) && safe.includes(safe.sourceOf(owner), safe.sourceOf(fn));
}

function arePlain(value, keys) {
  for (let i = 0; i < keys.length; i++) {
    const found = safe.getOwn(value, keys[i]);
    if (found.writable !== true || !found.enumerable || !found.configurable) return false;
  }
  return true;
}

// Whether an array's elements are not all plain, or are few among many holes.
function isSparse(value) {
  const { length } = value;
  if (length > FEW && isMostlyHoles(value, length)) return true;
  for (let i = 0; i < length; i++) {
    const found = safe.getOwn(value, i);
    if (found !== undefined && (found.writable !== true || !found.enumerable || !found.configurable)) return true;
  }
  return false;
}

function isMostlyHoles(value, length) {
  const stride = (length - (length % SAMPLES)) / SAMPLES;
  let count = 0;
  for (let i = 0; i < SAMPLES; i++) if (hasOwn(value, i * stride)) count++;
  return count < SAMPLES / 4;
}

function allKeys(value) {
  const all = safe.ownKeys(value);
  const keys = safe.list();
  for (let i = 0; i < all.length; i++) if (all[i] !== 'length') keys[keys.length] = all[i];
  return keys;
}

module.exports = { __proto__: null, install, make, fill, keysOf, arePlain, isSparse, allKeys, isMember, withQuietStacks };
//# sourceURL=node:internal/sessile/contents

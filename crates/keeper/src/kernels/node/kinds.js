'use strict';
// The kinds of values in a dump, and how to determine them.
//
// Both sides of a dump use these numbers: their meaning never changes within a version of
// the format.

const { types } = require('node:util');
const safe = require('./safe.js');

const SLOT = {
  __proto__: null,
  UNDEFINED: 0,
  NULL: 1,
  TRUE: 2,
  FALSE: 3,
  INTEGER: 4,
  NEGATIVE: 5,
  DOUBLE: 6,
  STRING: 7,
  BIGINT: 8,
  HOLE: 9,
  SEEN: 10,
  // A new object of kind K is NEW + K.
  NEW: 16,
};

const KIND = {
  __proto__: null,
  OBJECT: 0,
  ARRAY: 1,
  MAP: 2,
  SET: 3,
  DATE: 4,
  REGEXP: 5,
  ERROR: 6,
  BUFFER: 7,
  VIEW: 8,
  BOXED: 9,
  URL: 10,
  FUNCTION: 11,
  CLASS: 12,
  PROTOTYPE: 13,
  MEMBER: 14,
  KNOWN: 15,
  SYMBOL: 16,
};

// Flags of an object's body.
const BODY = { __proto__: null, CLOSED: 1, PROTOTYPE: 2, DESCRIBED: 4, SPARSE: 8, FIXED_LENGTH: 16 };
// Flags of a property.
const PROPERTY = { __proto__: null, WRITABLE: 1, ENUMERABLE: 2, CONFIGURABLE: 4, ACCESSOR: 8 };

// The default prototypes of objects of a kind. That of a view depends on its type.
const PROTOTYPES = safe.list();
PROTOTYPES[KIND.OBJECT] = Object.prototype;
PROTOTYPES[KIND.ARRAY] = Array.prototype;
PROTOTYPES[KIND.MAP] = Map.prototype;
PROTOTYPES[KIND.SET] = Set.prototype;
PROTOTYPES[KIND.DATE] = Date.prototype;
PROTOTYPES[KIND.REGEXP] = RegExp.prototype;
PROTOTYPES[KIND.ERROR] = Error.prototype;
PROTOTYPES[KIND.BUFFER] = ArrayBuffer.prototype;
PROTOTYPES[KIND.URL] = URL.prototype;

const VIEWS = safe.list();
for (const name of ['DataView', 'Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array', 'Float32Array', 'Float64Array', 'BigInt64Array', 'BigUint64Array', 'Float16Array']) {
  VIEWS[VIEWS.length] = { __proto__: null, name, make: globalThis[name] };
}

const tagOf = safe.uncurry(Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get);

// The number of a view's kind in VIEWS, or -1.
function viewOf(value) {
  const name = types.isDataView(value) ? 'DataView' : tagOf(value);
  for (let i = 0; i < VIEWS.length; i++) if (VIEWS[i].name === name) return i;
  return -1;
}

const { isView } = ArrayBuffer;
const href = safe.uncurry(Object.getOwnPropertyDescriptor(URL.prototype, 'href').get);

function isUrl(value) {
  try {
    href(value);
    return true;
  } catch {
    return false;
  }
}

// By brand, not by prototype: [test, kind or reason].
const BRANDS = [
  [types.isMap, KIND.MAP],
  [types.isSet, KIND.SET],
  [types.isDate, KIND.DATE],
  [types.isRegExp, KIND.REGEXP],
  [types.isNativeError, KIND.ERROR],
  [types.isArrayBuffer, KIND.BUFFER],
  [types.isBoxedPrimitive, KIND.BOXED],
  [types.isSharedArrayBuffer, 'shared memory cannot be carried'],
  [types.isPromise, 'a promise cannot be carried'],
  [types.isWeakMap, 'a WeakMap cannot be carried'],
  [types.isWeakSet, 'a WeakSet cannot be carried'],
  [types.isGeneratorObject, 'a generator cannot be carried'],
  [types.isMapIterator, 'an iterator cannot be carried'],
  [types.isSetIterator, 'an iterator cannot be carried'],
  [types.isModuleNamespaceObject, 'a module that was not imported by a run cannot be carried'],
  [types.isExternal, 'a native handle cannot be carried'],
  [types.isArgumentsObject, 'an arguments object cannot be carried'],
];

// The kind of an object that is not a function or a Proxy, or why there is none.
function kindOf(value) {
  if (safe.isArray(value)) return KIND.ARRAY;
  if (isView(value)) return KIND.VIEW;
  for (let i = 0; i < BRANDS.length; i++) if (BRANDS[i][0](value)) return BRANDS[i][1];
  return KIND.OBJECT;
}

// Nouns for instances of Node's classes.
const NOUNS = {
  __proto__: null,
  Socket: 'a socket',
  TLSSocket: 'a socket',
  UDP: 'a socket',
  Server: 'a server',
  Timeout: 'a timer',
  Immediate: 'a timer',
  ChildProcess: 'a child process',
  Worker: 'a worker',
  MessagePort: 'a message port',
  ReadStream: 'a stream',
  WriteStream: 'a stream',
  Readable: 'a stream',
  Writable: 'a stream',
  Duplex: 'a stream',
  Transform: 'a stream',
  PassThrough: 'a stream',
  ReadableStream: 'a stream',
  WritableStream: 'a stream',
  FileHandle: 'an open file',
  FSWatcher: 'a file watcher',
  EventEmitter: 'an event emitter',
};

const hasNoun = (name) => NOUNS[name] !== undefined;
const nounOf = (name) => NOUNS[name] ?? (name === '' ? 'an object of a built-in kind' : `an instance of ${name}`);

module.exports = { __proto__: null, SLOT, KIND, BODY, PROPERTY, PROTOTYPES, VIEWS, viewOf, isUrl, href, kindOf, hasNoun, nounOf };
//# sourceURL=node:internal/sessile/kinds

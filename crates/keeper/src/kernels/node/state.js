'use strict';
// The kernel's state: the user's top-level names, loaded modules, working directory and
// environment.
//
// Reading it must not change anything: no getter, no Proxy trap, no custom inspect method
// is called, and the printed form of a value is bounded.

const fs = require('node:fs');
const vm = require('node:vm');
const util = require('node:util');
const safe = require('./safe.js');
const { ask } = require('./evaluate.js');
const { isTwin } = require('./redeclare.js');
const { isBuiltin } = require('./imports.js');

const { inspect } = util;
const { isProxy } = util.types;
const { readlinkSync } = fs;
const { Script } = vm;

const REPR_LIMIT = 200;
// util.inspect does not limit the number of an object's keys.
const KEYS_LIMIT = 100;
const SIGNATURE_LIMIT = 200;

const own = new safe.Set();
const isOwn = safe.uncurry(Set.prototype.has);
const hasSeen = isOwn;
const see = safe.uncurry(Set.prototype.add);

// Global names that exist before any user code.
function install() {
  for (const key of safe.ownKeys(globalThis)) own.add(key);
  for (const key of ['require', 'module', 'exports']) own.add(key);
}

function lexicalNames() {
  const answer = ask('Runtime.globalLexicalScopeNames', {});
  return answer === null ? [] : answer.names;
}

function hasLexical(name) {
  const names = lexicalNames();
  for (let i = 0; i < names.length; i++) if (names[i] === name) return true;
  return false;
}

// The value of a top-level let, const or class: {value}, or null if it has not been
// initialised. The name comes from V8, so it is an identifier.
function lexicalValue(name) {
  try {
    return new Script(`({value: ${name}})`).runInThisContext();
  } catch {
    return null;
  }
}

function globalValue(name) {
  const descriptor = safe.getOwn(globalThis, name);
  if (descriptor === undefined) return null;
  if ('value' in descriptor) return descriptor;
  return isOwn(own, name) ? null : { value: undefined, accessor: true };
}

// What a name means at top level, if no getter is involved.
function meaningOf(name) {
  return hasLexical(name) ? lexicalValue(name)?.value : safe.getOwn(globalThis, name)?.value;
}

function isClass(value) {
  return safe.exec(/^class\b/, safe.sourceOf(value)) !== null;
}

function typeOf(value) {
  if (value === null) return 'null';
  if (typeof value !== 'object' && typeof value !== 'function') return typeof value;
  if (isProxy(value)) return 'Proxy';
  const prototype = safe.getPrototypeOf(value);
  const maker = prototype === null || isProxy(prototype) ? undefined : safe.getOwn(prototype, 'constructor')?.value;
  const name = typeof maker === 'function' && !isProxy(maker) ? safe.getOwn(maker, 'name')?.value : undefined;
  return typeof name === 'string' && name !== '' ? name : typeof value;
}

function reprOf(value) {
  try {
    if (isUnsafeToShow(value)) return `[${typeOf(value)}]`;
    const text = inspect(value, {
      depth: 0,
      maxArrayLength: 10,
      maxStringLength: REPR_LIMIT,
      breakLength: Infinity,
      getters: false,
      showProxy: true,
      customInspect: false,
    });
    return text.length <= REPR_LIMIT ? text : `${safe.slice(text, 0, REPR_LIMIT)}…`;
  } catch {
    return `[${typeOf(value)}]`;
  }
}

// inspect reads Symbol.toStringTag, and the name, message and stack of errors, through
// whatever getter the user has put there; and it lists every key.
function isUnsafeToShow(value) {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || isProxy(value)) return false;
  if (!safe.isArray(value) && !ArrayBuffer.isView(value) && safe.ownKeys(value).length > KEYS_LIMIT) return true;
  for (let object = value; object !== null; object = safe.getPrototypeOf(object)) {
    if (isProxy(object)) return true;
    for (const key of [Symbol.toStringTag, 'constructor', 'name', 'message', 'stack']) {
      const get = safe.getOwn(object, key)?.get;
      if (get !== undefined && !safe.includes(safe.sourceOf(get), '[native code]')) return true;
    }
  }
  return false;
}

// The beginning of a function's source: its name and parameters.
function signatureOf(name, value) {
  const source = safe.sourceOf(value);
  const parameters = safe.exec(/^(?:async\b\s*)?(?:function\b\s*)?\*?\s*[\w$]*\s*(\([^()]*(?:\([^()]*\)[^()]*)*\))/, source);
  if (parameters !== null && parameters[1].length <= SIGNATURE_LIMIT) return name + parameters[1];
  const single = safe.exec(/^(?:async\s+)?([\w$]+)\s*=>/, source);
  return single === null ? `${name}(…)` : `${name}(${single[1]})`;
}

function sort(name, found, state) {
  const { value } = found;
  if (typeof value !== 'function' || isProxy(value)) {
    const repr = found.accessor === true ? '[Getter]' : reprOf(value);
    safe.push(state.variables, { __proto__: null, name, type: found.accessor === true ? 'accessor' : typeOf(value), repr });
  } else if (isClass(value)) {
    safe.push(state.classes, name);
  } else {
    safe.push(state.functions, { __proto__: null, name, signature: signatureOf(name, value) });
  }
}

// All names of the user: {name, isLexical, found}, where `found` is null for a name that
// was declared but not initialised. `replaced` are built-ins that the user has replaced.
function roots(replaced) {
  const all = safe.list();
  const seen = new safe.Set();
  const names = lexicalNames();
  for (let i = 0; i < names.length; i++) {
    if (hasSeen(seen, names[i])) continue;
    see(seen, names[i]);
    all[all.length] = { __proto__: null, name: names[i], isLexical: true, found: lexicalValue(names[i]) };
  }
  const keys = safe.ownKeys(globalThis);
  for (let i = 0; i < keys.length; i++) {
    const name = keys[i];
    if (hasSeen(seen, name) || (typeof name === 'string' && isTwin(name))) continue;
    if (isOwn(own, name) && !isTaken(name)) continue;
    const found = safe.getOwn(globalThis, name);
    all[all.length] = { __proto__: null, name, isLexical: false, found };
  }
  for (let i = 0; i < replaced.length; i++) {
    const found = safe.getOwn(globalThis, replaced[i]);
    if (!hasSeen(seen, replaced[i])) all[all.length] = { __proto__: null, name: replaced[i], isLexical: false, found };
  }
  return all;
}

// Whether the user has assigned to the name of a built-in module: such a name is not
// enumerable until then. Other names of Node are not even read: reading some of them
// makes Node load a module.
function isTaken(name) {
  if (typeof name !== 'string' || !isBuiltin(name)) return false;
  const found = safe.getOwn(globalThis, name);
  return 'value' in found && found.enumerable;
}

function capture(imports) {
  const state = {
    __proto__: null,
    op: 'state',
    working_dir: workingDirectory(),
    variables: safe.list(),
    functions: safe.list(),
    classes: safe.list(),
    imports,
    env_vars: { __proto__: null, ...process.env },
  };
  const seen = new safe.Set();
  for (const name of lexicalNames()) {
    if (seen.has(name)) continue;
    seen.add(name);
    const found = lexicalValue(name);
    if (found !== null) sort(name, found, state);
  }
  for (const name of safe.ownKeys(globalThis)) {
    if (typeof name !== 'string' || isOwn(own, name) || seen.has(name) || isTwin(name)) continue;
    const found = globalValue(name);
    if (found !== null) sort(name, found, state);
  }
  return state;
}

// A directory that was removed has no path any more; Linux remembers one.
function workingDirectory() {
  try {
    return process.cwd();
  } catch {
    return readlinkSync('/proc/self/cwd');
  }
}

module.exports = { __proto__: null, install, capture, roots, hasLexical, meaningOf };
//# sourceURL=node:internal/sessile/state

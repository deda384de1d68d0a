'use strict';
// Source text that creates functions and classes again that were typed.
//
// This is only correct if the text has the same meaning at top level: V8 is asked,
// through the inspector, in which scopes a function lives, and one that sees the local
// variables of another is refused. The `this` of an arrow function and the `super` of a
// method are in no scope, so these are refused too.
//
// Invariant: none of the user's code runs. The inspector describes the properties of the
// objects it is asked about, and may call a getter for that; so a function whose
// properties are not plain is not asked about.

const inspector = require('node:inspector');
const { Script } = require('node:vm');
const { isProxy, isNativeError, isDate, isRegExp } = require('node:util').types;
const safe = require('./safe.js');
const { meaningOf } = require('./state.js');

// Where the inspector finds the object it is asked about. Not writable by user code, and
// empty except during a question.
const HOLDER = '\u200ccarried';
const FUNCTION = /^(?:async\s+)?function\b\s*(\*?)\s*([\p{ID_Start}$_\\][\p{ID_Continue}$\u200c\u200d\\]*)?/u;
const OWN_NAME = /^(?:class|(?:async\s+)?function\b\s*\*?)\s*([\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*)/u;
const PRIVATE = /#[\p{ID_Start}$_\\]/gu;
const STATIC_PRIVATE = /\bstatic\s+#[\p{ID_Continue}$\u200c\u200d]+\s*[=;}\n]/u;
const EXTENDS = /^class(?:\s+[\p{ID_Continue}$]+)?\s+extends\s+([\p{ID_Start}$_][\p{ID_Continue}$]*)\s*\{/u;
const COMPUTED = /^(?:async\b\s*|get\b\s*|set\b\s*|\*\s*)*\[/;
const COMPUTED_PLAINLY = /^(?:async\b\s*|get\b\s*|set\b\s*|\*\s*)*\[\s*(?:Symbol\.\w+|'[^'\\]*'|"[^"\\]*"|\d+)\s*\]/;
const OF_OUTSIDE = /\b(?:this|arguments)\b/;
const PRIVATE_LIMIT = 100;

const connect = safe.uncurry(inspector.Session.prototype.connect);
const disconnect = safe.uncurry(inspector.Session.prototype.disconnect);
const post = safe.uncurry(inspector.Session.prototype.post);
const get = safe.uncurry(Map.prototype.get);
const set = safe.uncurry(Map.prototype.set);

// Created before any user code: Node iterates over an array to create one.
const session = new inspector.Session();

let held = null;

function install() {
  safe.defineProperty(globalThis, HOLDER, { get: () => held });
}

// Runs `fn` while `value` is at HOLDER.
function holding(value, fn) {
  held = value;
  try {
    return fn();
  } finally {
    held = null;
  }
}

const hold = (value) => {
  held = value;
};

const isClassSource = (source) => safe.exec(/^class\b/, source) !== null;
const isNativeSource = (source) => safe.exec(/\{\s*\[native code\]\s*\}$/, source) !== null;

function compiles(text) {
  try {
    new Script(text);
    return true;
  } catch {
    return false;
  }
}

// Whether describing `value` runs none of the user's code. The inspector reads the stack
// of an error and the text of a date; and to see whether an object is like an array, it
// reads `splice`, and then an own `length`.
function isQuiet(value) {
  if ((typeof value !== 'object' || value === null) && typeof value !== 'function') return true;
  if (isNativeError(value) || isDate(value) || isRegExp(value)) return false;
  let hasSplice = false;
  for (let object = value; object !== null; object = safe.getPrototypeOf(object)) {
    if (isProxy(object)) return false;
    const splice = safe.getOwn(object, 'splice');
    if (splice?.get !== undefined) return false;
    hasSplice ||= splice !== undefined;
  }
  return !hasSplice || safe.getOwn(value, 'length')?.get === undefined;
}

function hasQuietProperties(fn) {
  const keys = safe.ownKeys(fn);
  for (let i = 0; i < keys.length; i++) {
    const { value } = safe.getOwn(fn, keys[i]);
    if (!isQuiet(value)) return false;
  }
  for (let object = safe.getPrototypeOf(fn); object !== null; object = safe.getPrototypeOf(object)) {
    if (isProxy(object)) return false;
  }
  return true;
}

// Whether V8 sees private names in the source: separating a name from its sign breaks a
// program, but not a string or a comment.
function hasPrivateNames(source) {
  PRIVATE.lastIndex = 0;
  for (let i = 0; i < PRIVATE_LIMIT; i++) {
    const found = safe.exec(PRIVATE, source);
    if (found === null) return false;
    const apart = `${safe.slice(source, 0, found.index)}# ${safe.slice(source, found.index + 1)}`;
    if (!compiles(`(${apart}\n)`)) return true;
  }
  return true;
}

// A variable of the scope that the source may refer to, or null. Within a class or a
// function expression, its own name means itself.
function usedLocal(fn, source, scope) {
  const names = safe.ownKeys(scope);
  const own = safe.exec(OWN_NAME, source)?.[1];
  const hasEval = safe.exec(/\beval\b/, source) !== null;
  for (let i = 0; i < names.length; i++) {
    if (names[i] === own && safe.getOwn(scope, names[i])?.value === fn) continue;
    if (hasEval || hasWord(source, names[i])) return names[i];
  }
  return null;
}

// An escape may stand for any letter of a name.
function hasWord(source, word) {
  if (safe.includes(source, '\\u')) return true;
  for (let at = safe.indexOf(source, word); at !== -1; at = safe.indexOf(source, word, at + 1)) {
    const around = safe.slice(source, at > 0 ? at - 1 : 0, at) + safe.slice(source, at + word.length, at + word.length + 1);
    if (safe.exec(/[\p{ID_Continue}$\u200c\u200d]/u, around) === null) return true;
  }
  return false;
}

// The sources of one dump. Connects to the inspector on first use; `close` it.
class Sources {
  constructor() {
    this.isConnected = false;
    this.known = new safe.Map();
  }

  close() {
    if (this.isConnected) disconnect(session);
    this.isConnected = false;
  }

  ask(method, params) {
    let answer = null;
    post(session, method, params, (error, result) => {
      if (error === null) answer = result;
    });
    return answer;
  }

  connect() {
    if (this.isConnected) return;
    this.isConnected = true;
    connect(session);
  }

  // The names of an array's or a view's properties that are not elements.
  names(array) {
    this.connect();
    const names = safe.list();
    const options = { ownProperties: true, nonIndexedPropertiesOnly: true };
    const found = this.ask('Runtime.getProperties', { objectId: this.handle(array), ...options });
    for (let i = 0; found !== null && i < found.result.length; i++) {
      const { name, symbol } = found.result[i];
      if (symbol === undefined && safe.getOwn(array, name) !== undefined) names[names.length] = name;
    }
    this.ask('Runtime.releaseObjectGroup', { objectGroup: 'carry' });
    return names;
  }

  // The local scopes around a function, each as an object of its variables, or null if
  // they cannot be read.
  scopes(fn) {
    this.connect();
    try {
      const described = this.properties(this.handle(fn))?.internalProperties;
      for (let i = 0; described !== undefined && i < described.length; i++) {
        if (described[i].name === '[[Scopes]]') return this.locals(this.properties(described[i].value.objectId));
      }
      return null;
    } finally {
      this.ask('Runtime.releaseObjectGroup', { objectGroup: 'carry' });
    }
  }

  // Taken directly: the inspector would describe the variables' values.
  locals(scopes) {
    const found = safe.list();
    const take = this.handle((scope) => {
      const variables = safe.getOwn(scope, 'object')?.value;
      if (typeof variables === 'object' && variables !== null) found[found.length] = variables;
    });
    for (let i = 0; i < scopes.result.length; i++) {
      const { description, objectId } = scopes.result[i].value ?? {};
      if (description === 'Script' || description === 'Global') continue;
      const count = found.length;
      const call = { objectId, functionDeclaration: 'function(take) { take(this) }', arguments: [{ objectId: take }], silent: true };
      this.ask('Runtime.callFunctionOn', call);
      if (found.length === count) return null;
    }
    return found;
  }

  // The inspector's name for a value.
  handle(value) {
    const expression = `this[${safe.JSONStringify(HOLDER)}]`;
    return holding(value, () => this.ask('Runtime.evaluate', { expression, silent: true, objectGroup: 'carry' }))?.result.objectId;
  }

  properties(objectId) {
    return objectId === undefined ? null : this.ask('Runtime.getProperties', { objectId, ownProperties: true });
  }

  // {source, form, declared, isStrict, hasPrivate, parent} or {problem}, for a function
  // that is not a Proxy.
  describe(fn) {
    let found = get(this.known, fn);
    if (found === undefined) {
      found = this.read(fn);
      set(this.known, fn, found);
    }
    return found;
  }

  read(fn) {
    const source = safe.sourceOf(fn);
    if (isNativeSource(source)) return { problem: 'a bound or native function cannot be carried' };
    const isClass = isClassSource(source);
    const what = isClass ? 'a class' : 'a function';
    if (!hasQuietProperties(fn)) return { problem: `${what} with properties that cannot be looked at without running code` };
    const scopes = this.scopes(fn);
    if (scopes === null) return { problem: `${what} whose surroundings cannot be seen` };
    for (let i = 0; i < scopes.length; i++) {
      const name = usedLocal(fn, source, scopes[i]);
      if (name !== null) return { problem: `${what} that uses ${name}, a local variable of the code around it` };
    }
    return isClass ? this.readClass(fn, source) : this.readFunction(fn, source);
  }

  readClass(fn, source) {
    if (!compiles(`(${source}\n)`)) return { problem: 'a class whose source does not stand alone' };
    const hasPrivate = hasPrivateNames(source);
    if (hasPrivate && safe.exec(STATIC_PRIVATE, source) !== null) return { problem: 'a class with static private fields, which cannot be read' };
    return { source, form: 'class', declared: null, isStrict: true, hasPrivate, parent: parentName(fn, source) };
  }

  readFunction(fn, source) {
    const head = safe.exec(FUNCTION, source);
    const described = { source, form: 'expression', declared: null, isStrict: false, hasPrivate: false };
    if (head !== null && compiles(`(${source}\n)`)) {
      // V8 gives these properties only to sloppy functions.
      const isPlain = head[1] === '' && safe.startsWith(source, 'function');
      described.isStrict = isPlain && safe.getOwn(fn, 'arguments') === undefined;
      described.declared = declaredName(fn, head[2]);
      return described;
    }
    const isArrow = compiles(`(${source}\n)`);
    if (isArrow && usesOutside(source)) return { problem: 'an arrow function that uses this or arguments of the code around it' };
    if (!isArrow && safe.exec(/\bsuper\b/, source) !== null) return { problem: 'a method that uses super' };
    if (isArrow) return described;
    if (safe.exec(COMPUTED, source) !== null && safe.exec(COMPUTED_PLAINLY, source) === null) return { problem: 'a method whose name is computed' };
    if (!compiles(`({${source}\n})`)) return { problem: 'a function whose source does not stand alone' };
    described.form = 'method';
    return described;
  }
}

// Whether an arrow function uses the `this` or `arguments` of the code around it, and not
// those of a function within it. V8 refuses `arguments` in a static block, so each `this`
// is replaced by `arguments` and the result is compiled there.
function usesOutside(source) {
  if (safe.exec(OF_OUTSIDE, source) === null) return false;
  const word = /\bthis\b/g;
  let out = '';
  let from = 0;
  for (let found = safe.exec(word, source); found !== null; found = safe.exec(word, source)) {
    out += `${safe.slice(source, from, found.index)}arguments`;
    from = found.index + 4;
  }
  return !compiles(`(class { static { (${out}${safe.slice(source, from)}\n) } })`);
}

// The local name of the class that a class extends, as in a mixin; '' if its parent has
// the same name at top level.
function parentName(fn, source) {
  const name = safe.exec(EXTENDS, source)?.[1];
  return name === undefined || meaningOf(name) === safe.getPrototypeOf(fn) ? '' : name;
}

// The name under which a function was declared, not only created: within it, that name
// means whatever the global name means.
function declaredName(fn, name) {
  if (name === undefined) return null;
  const own = safe.getOwn(globalThis, name);
  return own !== undefined && own.value === fn && !own.configurable ? name : null;
}

module.exports = { __proto__: null, install, hold, HOLDER, Sources, isClassSource, isNativeSource };
//# sourceURL=node:internal/sessile/code

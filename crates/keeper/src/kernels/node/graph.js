'use strict';
// Writes values, with everything that they refer to, as the bytes of a dump.
//
// A value is a *slot*: a primitive, the number of an object that was seen before, or a
// new object. The slot of a new object contains what is needed to create it, empty; its
// *body* (prototype, entries, properties) follows when all slots before it are written.
// So objects may refer to each other in circles and be nested to any depth, and neither
// side recurses.
//
// Invariants:
// - none of the user's code runs: properties are read as descriptors, kinds are detected
//   by brand, and a Proxy is never touched;
// - a root that holds something that cannot be carried leaves no trace, and is refused
//   with the path to it; objects that it shares are written with the next root that can
//   be carried.

const { types } = require('node:util');
const safe = require('./safe.js');
const { isCore, pathOf, symbolName } = require('./known.js');
const { isClassSource, isNativeSource } = require('./code.js');
const { SLOT, KIND, BODY, PROPERTY, PROTOTYPES, isUrl, hasNoun, kindOf, nounOf } = require('./kinds.js');
const contents = require('./contents.js');

const { isProxy } = types;
const get = safe.uncurry(Map.prototype.get);
const set = safe.uncurry(Map.prototype.set);
const drop = safe.uncurry(Map.prototype.delete);
const hexOf = safe.uncurry(BigInt.prototype.toString);
const keyFor = Symbol.keyFor;
const descriptionOf = safe.uncurry(Object.getOwnPropertyDescriptor(Symbol.prototype, 'description').get);
const { isExtensible, is } = Object;
const { toStringTag } = Symbol;
const hasOwn = safe.uncurry(Object.prototype.hasOwnProperty);

const FUNCTION_PROTOTYPES = [
  Function.prototype,
  Object.getPrototypeOf(async function () {}),
  Object.getPrototypeOf(function* () {}),
  Object.getPrototypeOf(async function* () {}),
];
// How many of the objects on the path to an obstacle are remembered for it.
const REMEMBERED = 32;
const PATH_LIMIT = 160;

class Obstacle {
  constructor(reason, suffix = '') {
    this.reason = reason;
    this.suffix = suffix;
  }
}

class Graph {
  constructor(known, sources, writer, members) {
    this.known = known;
    this.sources = sources;
    this.writer = writer;
    this.members = members;
    this.isCancelled = false;
    this.ids = new safe.Map();
    this.objects = safe.list();
    this.kinds = safe.list();
    this.parents = safe.list();
    this.steps = safe.list();
    this.modules = safe.list();
    this.bad = new safe.Map();
    this.good = new safe.Map();
    this.holder = -1;
    this.step = null;
  }

  // Writes a root. Returns null, or why it cannot be carried: then nothing of it is kept.
  attempt(name, value) {
    const first = this.objects.length;
    const modules = this.modules.length;
    this.names = new safe.Map();
    this.nameCount = 0;
    this.holder = -1;
    this.step = null;
    try {
      this.slot(value);
      for (let id = first; id < this.objects.length; id++) this.body(id);
      return null;
    } catch (obstacle) {
      if (!(obstacle instanceof Obstacle)) throw obstacle;
      const path = this.blame(obstacle);
      this.rollBack(first);
      this.modules.length = modules;
      return path === '' ? obstacle.reason : `${shorten(name + path)}: ${obstacle.reason}`;
    }
  }

  // Returns the path to an obstacle, and remembers the objects on it.
  blame(obstacle) {
    let path = this.step === null ? obstacle.suffix : stepText(this.step) + obstacle.suffix;
    let remembered = 0;
    for (let id = this.holder; id !== -1; id = this.parents[id]) {
      if (remembered++ < REMEMBERED) set(this.bad, this.objects[id], new Obstacle(obstacle.reason, path));
      const step = this.steps[id];
      if (step !== null) path = path.length > PATH_LIMIT ? `…${safe.slice(path, -PATH_LIMIT)}` : stepText(step) + path;
    }
    return path;
  }

  rollBack(first) {
    for (let id = first; id < this.objects.length; id++) drop(this.ids, this.objects[id]);
    this.objects.length = first;
    this.kinds.length = first;
    this.parents.length = first;
    this.steps.length = first;
  }

  // ---- slots

  slot(value) {
    const { writer } = this;
    switch (typeof value) {
      case 'undefined':
        return writer.byte(SLOT.UNDEFINED);
      case 'boolean':
        return writer.byte(value ? SLOT.TRUE : SLOT.FALSE);
      case 'number':
        return this.number(value);
      case 'string':
        writer.byte(SLOT.STRING);
        return writer.string(value);
      case 'bigint':
        writer.byte(SLOT.BIGINT);
        return writer.string(hexOf(value, 16));
      default:
        if (value === null) return writer.byte(SLOT.NULL);
        return this.reference(value);
    }
  }

  number(value) {
    const { writer } = this;
    if (value % 1 === 0 && value < 2 ** 47 && value > -(2 ** 47) && !is(value, -0)) {
      writer.byte(value < 0 ? SLOT.NEGATIVE : SLOT.INTEGER);
      writer.count(value < 0 ? -value : value);
    } else {
      writer.byte(SLOT.DOUBLE);
      writer.double(value);
    }
  }

  reference(value) {
    const id = get(this.ids, value);
    if (id !== undefined) {
      this.writer.byte(SLOT.SEEN);
      this.writer.count(id);
      return;
    }
    const bad = get(this.bad, value);
    if (bad !== undefined) throw bad;
    const kind = this.make(value);
    const { length } = this.objects;
    set(this.ids, value, length);
    this.objects[length] = value;
    this.kinds[length] = kind;
    this.parents[length] = this.holder;
    this.steps[length] = this.step;
  }

  open(kind) {
    this.writer.byte(SLOT.NEW + kind);
    return kind;
  }

  // Writes what is needed to create the object. Objects that must exist before it are
  // written within, and have lower numbers.
  make(value) {
    if (typeof value === 'symbol') return this.makeSymbol(value);
    if (isProxy(value)) throw new Obstacle('a Proxy cannot be carried');
    const known = this.known.find(value);
    if (known !== null) return this.makeKnown(known);
    if (typeof value === 'function') return this.makeFunction(value);
    const owner = classOf(value);
    if (owner !== null) {
      this.writable(owner);
      this.open(KIND.PROTOTYPE);
      this.slot(owner);
      return KIND.PROTOTYPE;
    }
    let kind = kindOf(value);
    if (typeof kind === 'string') throw new Obstacle(kind);
    const prototype = safe.getPrototypeOf(value);
    if (prototype !== PROTOTYPES[kind] && prototype !== null) {
      if (kind === KIND.OBJECT && prototype === PROTOTYPES[KIND.URL] && isUrl(value)) kind = KIND.URL;
      else this.checkPrototype(prototype, kind);
    }
    this.open(kind);
    contents.make(this, value, kind);
    return kind;
  }

  makeSymbol(value) {
    this.open(KIND.SYMBOL);
    const { writer } = this;
    const registered = keyFor(value);
    const name = symbolName(value);
    const text = name ?? registered ?? descriptionOf(value);
    writer.byte(name !== null ? 0 : registered !== undefined ? 1 : text === undefined ? 3 : 2);
    if (text !== undefined) writer.string(text);
    return KIND.SYMBOL;
  }

  makeKnown(entry) {
    const { module } = entry;
    const path = pathOf(entry);
    this.open(KIND.KNOWN);
    this.writer.count(module === null ? 0 : this.moduleNumber(module) + 1);
    this.writer.count(path.length);
    for (let i = 0; i < path.length; i++) this.writer.string(path[i]);
    return KIND.KNOWN;
  }

  moduleNumber(module) {
    const { modules } = this;
    for (let i = 0; i < modules.length; i++) if (modules[i] === module) return i;
    modules[modules.length] = module;
    return modules.length - 1;
  }

  makeFunction(value) {
    const member = get(this.members, value);
    if (member !== undefined) {
      this.writable(member.owner);
      this.open(KIND.MEMBER);
      this.slot(member.owner);
      this.writer.string(member.part);
      this.key(member.key);
      return KIND.MEMBER;
    }
    const code = this.writable(value);
    if (code.form === 'class') {
      const parent = safe.getPrototypeOf(value);
      this.open(KIND.CLASS);
      this.slot(parent === FUNCTION_PROTOTYPES[0] ? undefined : parent);
      this.writer.string(code.parent);
      this.writer.string(code.source);
      return KIND.CLASS;
    }
    this.open(KIND.FUNCTION);
    this.writer.byte((code.form === 'method' ? 1 : 0) + (code.isStrict ? 2 : 0) + (code.declared === null ? 0 : 4));
    if (code.declared !== null) this.writer.string(code.declared);
    this.writer.string(code.source);
    return KIND.FUNCTION;
  }

  writable(fn) {
    const code = this.sources.describe(fn);
    if (code.problem !== undefined) throw new Obstacle(code.problem);
    return code;
  }

  // ---- prototypes

  // Refuses an object whose prototypes mean more than its properties show.
  checkPrototype(prototype, kind) {
    const cache = kind === KIND.OBJECT ? this.good : null;
    if (cache !== null && get(cache, prototype) === true) return;
    for (let object = prototype; object !== null && object !== PROTOTYPES[KIND.OBJECT]; object = safe.getPrototypeOf(object)) {
      if (isProxy(object)) throw new Obstacle('an object whose prototype is a Proxy cannot be carried');
      this.checkMaker(object, kind);
    }
    if (cache !== null) set(cache, prototype, true);
  }

  checkMaker(prototype, kind) {
    const maker = safe.getOwn(prototype, 'constructor')?.value;
    const isMade = typeof maker === 'function' && !isProxy(maker);
    const name = isMade ? nameOf(maker) : '';
    const known = this.known.find(prototype);
    if (known !== null && isCore(known.module)) {
      if (kind !== KIND.OBJECT) return;
      throw new Obstacle(`${nounOf(name)} cannot be carried`);
    }
    if (!isMade) return this.checkTag(prototype, kind);
    if (safe.getOwn(maker, 'prototype')?.value !== prototype) return;
    if (known === null) {
      const { problem } = this.sources.describe(maker);
      if (problem !== undefined) throw new Obstacle(hasNoun(name) || isNativeSource(safe.sourceOf(maker)) ? `${nounOf(name)} cannot be carried` : `an instance of ${name}, ${problem}`);
    }
    if (this.hasPrivate(maker, known)) throw new Obstacle(`an instance of ${name}, whose private fields cannot be read`);
  }

  // Iterators and similar objects have no maker, but a tag and native methods.
  checkTag(prototype, kind) {
    const tag = safe.getOwn(prototype, toStringTag)?.value;
    const next = safe.getOwn(prototype, 'next')?.value;
    if (kind !== KIND.OBJECT || typeof tag !== 'string' || typeof next !== 'function' || isProxy(next)) return;
    if (isNativeSource(safe.sourceOf(next))) throw new Obstacle('an iterator cannot be carried');
  }

  hasPrivate(maker, known) {
    if (known === null) return this.sources.describe(maker).hasPrivate;
    return safe.exec(/#[\w$]/, safe.sourceOf(maker)) !== null;
  }

  // ---- bodies

  body(id) {
    if (this.isCancelled) throw new safe.Error('it was interrupted');
    const value = this.objects[id];
    const kind = this.kinds[id];
    if (kind === KIND.SYMBOL || kind === KIND.KNOWN || kind === KIND.MEMBER) return;
    this.holder = id;
    const keys = contents.keysOf(this, value, kind);
    const isDescribed = !contents.arePlain(value, keys);
    const isSparse = kind === KIND.ARRAY && contents.isSparse(value);
    const prototype = this.ownPrototype(value, kind);
    let flags = isExtensible(value) ? 0 : BODY.CLOSED;
    if (prototype !== undefined) flags |= BODY.PROTOTYPE;
    if (isDescribed || isSparse) flags |= BODY.DESCRIBED;
    if (isSparse) flags |= BODY.SPARSE;
    if (kind === KIND.ARRAY && !safe.getOwn(value, 'length').writable) flags |= BODY.FIXED_LENGTH;
    this.writer.byte(flags);
    if (prototype !== undefined) this.at(PROTOTYPE_STEP, prototype);
    contents.fill(this, value, kind, isSparse);
    this.properties(value, isSparse ? contents.allKeys(value) : keys, isDescribed || isSparse);
    this.step = null;
  }

  // The prototype, if it differs from the default for such an object.
  ownPrototype(value, kind) {
    if (kind === KIND.CLASS || kind === KIND.PROTOTYPE) return undefined;
    const prototype = safe.getPrototypeOf(value);
    if (kind === KIND.FUNCTION) {
      for (let i = 0; i < FUNCTION_PROTOTYPES.length; i++) if (FUNCTION_PROTOTYPES[i] === prototype) return undefined;
    }
    return prototype === PROTOTYPES[kind] ? undefined : prototype;
  }

  at(step, value) {
    this.step = step;
    this.slot(value);
  }

  properties(value, keys, isDescribed) {
    this.writer.count(keys.length);
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i];
      this.step = key;
      this.key(key);
      // Own and plain, so reading it runs no code.
      if (isDescribed) this.described(safe.getOwn(value, key));
      else this.slot(value[key]);
    }
  }

  described(found) {
    const isAccessor = !('value' in found);
    const flags =
      (found.writable === true ? PROPERTY.WRITABLE : 0) |
      (found.enumerable ? PROPERTY.ENUMERABLE : 0) |
      (found.configurable ? PROPERTY.CONFIGURABLE : 0) |
      (isAccessor ? PROPERTY.ACCESSOR : 0);
    this.writer.byte(flags);
    if (!isAccessor) return this.slot(found.value);
    this.slot(found.get);
    this.slot(found.set);
  }

  // Names of properties; each is written once per root.
  key(key) {
    const { writer } = this;
    if (typeof key === 'symbol') {
      writer.count(1);
      return this.reference(key);
    }
    const number = get(this.names, key);
    if (number !== undefined) return writer.count(number);
    set(this.names, key, this.nameCount + 2);
    this.nameCount++;
    writer.count(0);
    writer.string(key);
  }
}

const PROTOTYPE_STEP = { text: '.__proto__' };

function stepText(step) {
  if (typeof step === 'number') return `[${step}]`;
  if (typeof step === 'symbol') return `[${descriptionOf(step) ?? 'symbol'}]`;
  if (typeof step === 'object') return step.text;
  return safe.exec(/^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u, step) === null ? `[${safe.JSONStringify(safe.slice(step, 0, PATH_LIMIT))}]` : `.${step}`;
}

const shorten = (path) => (path.length <= 2 * PATH_LIMIT ? path : `${safe.slice(path, 0, PATH_LIMIT)}…${safe.slice(path, -PATH_LIMIT)}`);

function nameOf(fn) {
  const name = safe.getOwn(fn, 'name')?.value;
  return typeof name === 'string' ? name : '';
}

// The class whose prototype an object is, or null.
function classOf(object) {
  const maker = safe.getOwn(object, 'constructor')?.value;
  if (typeof maker !== 'function' || isProxy(maker) || !hasOwn(maker, 'prototype')) return null;
  return safe.getOwn(maker, 'prototype').value === object && isClassSource(safe.sourceOf(maker)) ? maker : null;
}

contents.install((reason) => new Obstacle(reason));

module.exports = { __proto__: null, Graph };
//# sourceURL=node:internal/sessile/graph

'use strict';
// Creates the values of a dump again: the reading side of `graph`.
//
// User code runs in one place, `run`: the sources of functions and classes, which may
// have static initialisers and computed keys. A root that needs something that cannot be
// created is left out with the reason, and so are the roots that refer to an object of
// it.

const { Script } = require('node:vm');
const safe = require('./safe.js');
const { Damaged } = require('./bytes.js');
const { SLOT, KIND, BODY, PROPERTY, VIEWS } = require('./kinds.js');
const { follow, isObject } = require('./known.js');

const { preventExtensions, is } = Object;
const { Map: MapOf, Set: SetOf, Date: DateOf, RegExp: RegExpOf, Uint8Array: Bytes, URL: UrlOf, BigInt: BigIntOf, Object: box, Symbol: SymbolOf } = globalThis;
const { for: registered } = Symbol;
const setEntry = safe.uncurry(Map.prototype.set);
const addMember = safe.uncurry(Set.prototype.add);
const setBytes = safe.uncurry(Uint8Array.prototype.set);
const runScript = safe.uncurry(Script.prototype.runInThisContext);
const hole = { __proto__: null };
const wellKnown = { __proto__: null };
for (const key of Object.getOwnPropertyNames(Symbol)) if (typeof Symbol[key] === 'symbol') wellKnown[key] = Symbol[key];

class Failure {
  constructor(reason) {
    this.reason = reason;
  }
}

class Rebuilder {
  // `modules` has the exports of each module, or a Failure. `guard` calls a function that
  // runs user code; it may be nested.
  constructor(modules, guard) {
    this.modules = modules;
    this.guard = guard;
    this.objects = safe.list();
  }

  // Returns the value of a root, whose objects have the numbers from `first` on.
  root(reader, first) {
    this.reader = reader;
    this.names = safe.list();
    this.kinds = safe.list();
    this.first = first;
    this.objects.length = first;
    const value = this.slot();
    for (let id = first; id < this.objects.length; id++) this.body(this.objects[id], this.kinds[id - first]);
    if (reader.at !== reader.end) throw new Damaged('a value is longer than it says');
    return value;
  }

  // Makes every reference to the objects of a failed root fail.
  fail(first, count, failure) {
    for (let id = first; id < first + count; id++) this.objects[id] = failure;
  }

  // ---- slots

  slot() {
    const { reader } = this;
    const tag = reader.byte();
    switch (tag) {
      case SLOT.UNDEFINED:
        return undefined;
      case SLOT.NULL:
        return null;
      case SLOT.TRUE:
        return true;
      case SLOT.FALSE:
        return false;
      case SLOT.INTEGER:
        return reader.count();
      case SLOT.NEGATIVE:
        return -reader.count();
      case SLOT.DOUBLE:
        return reader.double();
      case SLOT.STRING:
        return reader.string();
      case SLOT.BIGINT:
        return bigint(reader.string());
      case SLOT.HOLE:
        return hole;
      case SLOT.SEEN:
        return this.seen(reader.count());
      default:
        return this.fresh(tag - SLOT.NEW);
    }
  }

  seen(id) {
    if (id >= this.objects.length) throw new Damaged('it refers to something that is not there');
    const value = this.objects[id];
    if (value instanceof Failure) throw value;
    return value;
  }

  fresh(kind) {
    const value = this.make(kind);
    this.kinds[this.objects.length - this.first] = kind;
    this.objects[this.objects.length] = value;
    return value;
  }

  make(kind) {
    const { reader } = this;
    switch (kind) {
      case KIND.OBJECT:
        return {};
      case KIND.ARRAY:
        return arrayOf(reader.count());
      case KIND.MAP:
        return new MapOf();
      case KIND.SET:
        return new SetOf();
      case KIND.DATE:
        return new DateOf(reader.double());
      case KIND.REGEXP:
        return attempt(() => new RegExpOf(reader.string(), reader.string()), 'a regular expression');
      case KIND.ERROR:
        return new safe.Error();
      case KIND.BUFFER:
        return bufferOf(reader.block());
      case KIND.VIEW:
        return this.makeView();
      case KIND.BOXED:
        return box(this.slot());
      case KIND.URL:
        return attempt(() => new UrlOf(reader.string()), 'a URL');
      case KIND.FUNCTION:
        return this.makeFunction();
      case KIND.CLASS:
        return this.makeClass();
      case KIND.PROTOTYPE:
        return this.part(this.slot(), 'prototype', 'value');
      case KIND.MEMBER:
        return this.makeMember();
      case KIND.KNOWN:
        return this.makeKnown();
      case KIND.SYMBOL:
        return makeSymbol(reader);
      default:
        throw new Damaged(`it has a value of the unknown kind ${kind}`);
    }
  }

  makeView() {
    const view = VIEWS[this.reader.byte()];
    const buffer = this.slot();
    const offset = this.reader.count();
    const length = this.reader.count();
    if (view === undefined) throw new Damaged('it has a view of an unknown kind');
    if (view.make === undefined) throw new Failure(`this Node has no ${view.name}`);
    return attempt(() => new view.make(buffer, offset, length), `a ${view.name}`);
  }

  makeKnown() {
    const module = this.reader.count();
    const path = safe.list();
    for (let left = this.reader.count(); left > 0; left--) path[path.length] = this.reader.string();
    const start = module === 0 ? globalThis : this.modules[module - 1];
    if (start instanceof Failure) throw start;
    const value = follow(start, path);
    if (!isObject(value)) throw new Failure(`there is no ${safe.join(path, '.')} here`);
    return value;
  }

  makeMember() {
    const owner = this.slot();
    const place = this.reader.string();
    const key = this.key();
    const holder = place[0] === 's' ? owner : this.part(owner, 'prototype', 'value');
    return this.part(holder, key, safe.slice(place, 2));
  }

  part(holder, key, part) {
    const found = isObject(holder) ? safe.getOwn(holder, key)?.[part] : undefined;
    if (!isObject(found)) throw new Failure('a class is not what it was');
    return found;
  }

  // ---- code

  run(text) {
    return this.guard(() => runScript(new Script(text, { filename: '<restored>' }), { __proto__: null, displayErrors: false }));
  }

  makeFunction() {
    const { reader } = this;
    const form = reader.byte();
    const declared = form & 4 ? reader.string() : null;
    const source = reader.string();
    const head = form & 2 ? "'use strict';" : '';
    if (declared !== null) {
      this.run(`${head}${source}\n`);
      return this.part(globalThis, declared, 'value');
    }
    if (!(form & 1)) return this.function(this.run(`${head}(${source}\n)`));
    const holder = this.run(`${head}({${source}\n})`);
    const found = safe.getOwn(holder, safe.ownKeys(holder)[0]);
    return this.function(found?.value ?? found?.get ?? found?.set);
  }

  function(value) {
    if (typeof value !== 'function') throw new Failure('its source makes no function here');
    return value;
  }

  makeClass() {
    const parent = this.slot();
    const name = this.reader.string();
    const source = this.reader.string();
    const made = this.function(name === '' ? this.run(`(${source}\n)`) : this.guard(() => this.run(`((${name}) => ${source}\n)`)(parent)));
    if (parent !== undefined && safe.getPrototypeOf(made) !== parent) this.adopt(made, parent);
    return made;
  }

  // A class may extend an expression, which returns another class each time; `super` goes
  // by the prototypes.
  adopt(made, parent) {
    safe.setPrototypeOf(made, parent);
    safe.setPrototypeOf(this.part(made, 'prototype', 'value'), this.part(parent, 'prototype', 'value'));
  }

  // ---- bodies

  body(value, kind) {
    if (kind === KIND.SYMBOL || kind === KIND.KNOWN || kind === KIND.MEMBER) return;
    const flags = this.reader.byte();
    if (flags & BODY.PROTOTYPE) {
      const prototype = this.slot();
      if (prototype !== null && !isObject(prototype)) throw new Damaged('a prototype is no object');
      safe.setPrototypeOf(value, prototype);
    }
    this.fill(value, kind, flags);
    for (let left = this.reader.count(); left > 0; left--) this.property(value, (flags & BODY.DESCRIBED) !== 0);
    if (flags & BODY.FIXED_LENGTH) safe.defineProperty(value, 'length', { __proto__: null, writable: false });
    if (flags & BODY.CLOSED) preventExtensions(value);
  }

  fill(value, kind, flags) {
    if (kind === KIND.ARRAY && !(flags & BODY.SPARSE)) {
      const { length } = value;
      for (let i = 0; i < length; i++) {
        const item = this.slot();
        if (item !== hole) value[i] = item;
      }
    } else if (kind === KIND.MAP) {
      for (let left = this.reader.count(); left > 0; left -= 2) setEntry(value, this.slot(), this.slot());
    } else if (kind === KIND.SET) {
      for (let left = this.reader.count(); left > 0; left--) addMember(value, this.slot());
    } else if (kind === KIND.REGEXP) {
      safe.defineProperty(value, 'lastIndex', { __proto__: null, value: this.slot() });
    } else if (kind === KIND.ERROR) {
      const stack = this.slot();
      if (stack === undefined) delete value.stack;
      else define(value, 'stack', { __proto__: null, value: stack, writable: true, enumerable: false, configurable: true });
    } else if (kind === KIND.FUNCTION) {
      const prototype = this.slot();
      if (prototype !== undefined) define(value, 'prototype', { __proto__: null, value: prototype });
    } else if (kind === KIND.CLASS || kind === KIND.PROTOTYPE) {
      for (let left = this.reader.count(); left > 0; left--) {
        if (safe.getOwn(value, this.key()) === undefined) throw new Failure('a class whose source makes other methods here');
      }
    }
  }

  property(value, isDescribed) {
    const key = this.key();
    const flags = isDescribed ? this.reader.byte() : PROPERTY.WRITABLE | PROPERTY.ENUMERABLE | PROPERTY.CONFIGURABLE;
    const enumerable = (flags & PROPERTY.ENUMERABLE) !== 0;
    const configurable = (flags & PROPERTY.CONFIGURABLE) !== 0;
    if (flags & PROPERTY.ACCESSOR) {
      const get = this.slot();
      define(value, key, { __proto__: null, get, set: this.slot(), enumerable, configurable });
    } else {
      const writable = (flags & PROPERTY.WRITABLE) !== 0;
      define(value, key, { __proto__: null, value: this.slot(), writable, enumerable, configurable });
    }
  }

  key() {
    const number = this.reader.count();
    if (number === 1) return this.slot();
    if (number === 0) {
      const name = this.reader.string();
      this.names[this.names.length] = name;
      return name;
    }
    if (number - 2 >= this.names.length) throw new Damaged('it refers to a name that is not there');
    return this.names[number - 2];
  }
}

function define(value, key, descriptor) {
  // A static block may have closed its class.
  if (safe.defineOwn(value, key, descriptor)) return;
  const now = safe.getOwn(value, key);
  if (now === undefined || !is(now.value, descriptor.value)) throw new Failure(`its property ${safe.StringOf(key)} cannot be set`);
}

// A RangeError here is caused by the file.
function attempt(make, what) {
  try {
    return make();
  } catch {
    throw new Failure(`${what} cannot be made here`);
  }
}

function arrayOf(length) {
  const array = [];
  if (length >= 2 ** 32) throw new Damaged('an array is too long');
  array.length = length;
  return array;
}

function bufferOf(block) {
  const bytes = new Bytes(block.length);
  setBytes(bytes, block);
  return bytes.buffer;
}

function bigint(hex) {
  const isNegative = hex[0] === '-';
  const digits = isNegative ? safe.slice(hex, 1) : hex;
  const value = attempt(() => BigIntOf(`0x${digits}`), 'a BigInt');
  return isNegative ? -value : value;
}

function makeSymbol(reader) {
  const form = reader.byte();
  if (form === 3) return SymbolOf();
  const text = reader.string();
  if (form === 1) return registered(text);
  if (form === 2) return SymbolOf(text);
  if (wellKnown[text] === undefined) throw new Failure(`there is no Symbol.${text} here`);
  return wellKnown[text];
}

module.exports = { __proto__: null, Rebuilder, Failure };
//# sourceURL=node:internal/sessile/rebuild

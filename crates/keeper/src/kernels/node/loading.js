'use strict';
// Loads a dump into a fresh kernel: settings, modules, then root after root.
//
// Modules and the sources of functions and classes are user code: it may throw, hang, or
// be terminated by SIGINT, which unwinds everything up to the event loop. So all progress
// is kept in the Loader, and `resume` continues after whatever was being created.
//
// Invariant: nothing is changed before the file was found to be complete. A name that
// cannot be created is not declared.

const safe = require('./safe.js');
const imports = require('./imports.js');
const environment = require('./environment.js');
const interrupt = require('./interrupt.js');
const report = require('./report.js');
const code = require('./code.js');
const { evaluate } = require('./evaluate.js');
const { openDump, Damaged } = require('./bytes.js');
const { Rebuilder, Failure } = require('./rebuild.js');
const { PROPERTY } = require('./kinds.js');
const { RECORD, RANK, LEXICAL } = require('./carry.js');

const INTERRUPTED = 'it was interrupted while it was made again';
const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;
// Number of names that are declared at once.
const BATCH = 1000;
const { chdir } = process;

let loader = null;

// Calls `report` once, with {carried, left, error}. `cwd`: a directory other than that of
// the dump, if it is given.
function load(path, cwd, report) {
  loader = new Loader(report, cwd);
  loader.start(path);
}

const isLoading = () => loader !== null;

// Called from the event loop after a signal.
function resume() {
  if (loader !== null) loader.resume();
}

const reasonOf = (thrown) => {
  if (thrown instanceof Failure) return thrown.reason;
  if (thrown instanceof Damaged) return `damaged: ${thrown.text}`;
  const { type, message } = interrupt.unguarded(() => report.errorOf(thrown));
  return `${type}: ${message}`;
};

class Loader {
  constructor(report, cwd) {
    this.report = report;
    this.cwd = cwd;
    this.done = { __proto__: null, carried: 0, left: safe.list(), error: null };
    this.modules = safe.list();
    this.exports = safe.list();
    this.roots = safe.list();
    this.at = 0;
    this.rank = RANK.PRIMITIVE;
    // Created, but not declared yet.
    this.ready = safe.list();
    // What user code is running for: 'module', a root, or null.
    this.doing = null;
    // Counts what was given up, so that late results are recognized.
    this.turn = 0;
    this.rebuilder = new Rebuilder(this.exports, interrupt.unguarded);
  }

  start(path) {
    try {
      this.settle(this.index(openDump(path)));
    } catch (error) {
      const why = error instanceof Damaged ? error.text : error.message;
      this.done.error = `the dump cannot be read: ${why}`;
      return this.finish();
    }
    interrupt.watchSignals();
    imports.refresh();
    this.next();
  }

  // Finds the records; returns the settings.
  index(reader) {
    let settings = null;
    let first = 0;
    while (reader.at < reader.end) {
      const letter = reader.byte();
      const part = reader.part();
      if (letter === RECORD.SETTINGS) settings = safe.JSONParse(part.string());
      else if (letter === RECORD.MODULES) this.modules = safe.JSONParse(part.string());
      else if (letter === RECORD.ROOT) {
        const root = readRoot(part, first);
        this.roots[this.roots.length] = root;
        first += root.count;
      }
    }
    if (settings === null) throw new Damaged('it has no settings');
    return settings;
  }

  settle({ directory, changed, removed }) {
    environment.apply({ changed, removed });
    try {
      safe.apply(chdir, process, [this.cwd ?? directory]);
    } catch (error) {
      this.leave('working directory', `${this.cwd ?? directory}: ${error.code}`);
    }
  }

  leave(name, reason) {
    safe.push(this.done.left, { __proto__: null, name, reason });
  }

  // Continues until something has to be waited for, or everything is done.
  next() {
    while (this.exports.length < this.modules.length) if (!this.loadModule(this.modules[this.exports.length])) return;
    while (this.at < this.roots.length) {
      const { rank } = this.roots[this.at];
      // A class is evaluated when it is created, and may refer to any name before it.
      const isDue = rank === RANK.CLASS || rank !== this.rank || this.ready.length >= BATCH;
      if (isDue && this.ready.length > 0) return this.declare();
      this.rank = rank;
      this.loadRoot(this.roots[this.at++]);
    }
    if (this.ready.length > 0) return this.declare();
    this.finish();
  }

  finish() {
    loader = null;
    this.report(this.done);
  }

  resume() {
    const { doing } = this;
    if (doing === null) return;
    this.doing = null;
    this.turn++;
    if (doing === 'module') this.exports[this.exports.length] = new Failure(`a module: ${INTERRUPTED}`);
    else this.failed(doing, new Failure(INTERRUPTED));
    this.next();
  }

  // ---- modules

  // Returns whether it has already loaded or failed.
  loadModule({ how, name, options }) {
    const turn = ++this.turn;
    const loaded = (value) => {
      this.doing = null;
      this.exports[this.exports.length] = value;
    };
    const failed = (thrown) => loaded(new Failure(`the module ${name} cannot be loaded: ${reasonOf(thrown)}`));
    this.doing = 'module';
    try {
      const value = interrupt.unguarded(() => imports.again(how, name, options));
      if (how !== 'import') {
        loaded(value);
        return true;
      }
      const later = (then) => interrupt.guarded((value) => {
        if (turn !== this.turn) return;
        then(value);
        this.next();
      });
      safe.then(value, later(loaded), later(failed));
      return false;
    } catch (thrown) {
      failed(thrown);
      return true;
    }
  }

  // ---- roots

  loadRoot(root) {
    this.doing = root;
    try {
      const value = this.rebuilder.root(root.reader, root.first);
      this.doing = null;
      if (this.rebuilder.objects.length !== root.first + root.count) throw new Damaged('a value has not the parts that it should have');
      if (root.binding === LEXICAL) safe.push(this.ready, { __proto__: null, root, value });
      else this.define(root, value);
    } catch (thrown) {
      this.doing = null;
      this.failed(root, thrown);
    }
  }

  failed(root, thrown) {
    const reason = reasonOf(thrown);
    const needed = thrown instanceof Failure && thrown.root !== undefined ? `it needs ${thrown.root}: ` : '';
    this.leave(root.name, needed + reason);
    const failure = new Failure(reason);
    failure.root = needed === '' ? root.name : thrown.root;
    this.rebuilder.fail(root.first, root.count, failure);
  }

  define({ name, binding }, value) {
    const isDone = safe.defineOwn(globalThis, name, {
      __proto__: null,
      value,
      writable: (binding & PROPERTY.WRITABLE) !== 0,
      enumerable: (binding & PROPERTY.ENUMERABLE) !== 0,
      configurable: (binding & PROPERTY.CONFIGURABLE) !== 0,
    });
    if (isDone) this.done.carried++;
    else this.leave(name, 'the global object does not take it');
  }

  // Declares what is ready with let, in REPL mode, so that it can be declared again like
  // any name that a run has declared.
  declare() {
    const batch = this.ready;
    this.ready = safe.list();
    this.declareAll(batch, () => this.next());
  }

  declareAll(batch, then) {
    const values = safe.list();
    const parts = safe.list();
    for (let i = 0; i < batch.length; i++) {
      values[i] = batch[i].value;
      parts[i] = `${batch[i].root.name} = this[${safe.JSONStringify(code.HOLDER)}][${i}]`;
    }
    code.hold(values);
    evaluate(`let ${safe.join(parts, ', ')}; void 0`, 0, (fn) => fn(), interrupt.guarded((outcome) => {
      code.hold(null);
      if ('value' in outcome) this.done.carried += batch.length;
      else if (batch.length === 1) this.leave(batch[0].root.name, 'the name cannot be declared here');
      else return this.declareEach(batch, 0, then);
      then();
    }));
  }

  // One name of a batch is refused: finds out which.
  declareEach(batch, i, then) {
    if (i === batch.length) return then();
    const one = safe.list();
    one[0] = batch[i];
    this.declareAll(one, () => this.declareEach(batch, i + 1, then));
  }
}

// `first` is the number that its first object must have.
function readRoot(reader, first) {
  const name = reader.string();
  const binding = reader.byte();
  const rank = reader.byte();
  const count = reader.count();
  if (count > reader.end - reader.at) throw new Damaged('a value has more parts than it can have');
  if (binding === LEXICAL && safe.exec(IDENTIFIER, name) === null) throw new Damaged('a name is none');
  return { __proto__: null, name, binding, rank, first, count, reader };
}

module.exports = { __proto__: null, load, resume, isLoading };
//# sourceURL=node:internal/sessile/loading

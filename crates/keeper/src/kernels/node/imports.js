'use strict';
// import and require, resolved from the working directory.
//
// Code that V8 evaluates in REPL mode has no module loader behind import(), and no import
// declarations. So both are rewritten to calls of our function, whose name has the same
// length and looks the same (columns stay right).
//
// Invariant: V8's own parser decides what is code. A place in the text is changed only if
// V8 has refused exactly that token, or if breaking it breaks the program; strings,
// templates, regular expressions, comments, and methods that happen to be called import
// are left alone.

const path = require('node:path');
const Module = require('node:module');
const safe = require('./safe.js');
const { parseError } = require('./evaluate.js');
const { readDeclaration } = require('./declaration.js');

const IMPORT = '\u0131mport';
const NOT_A_MODULE = 'SyntaxError: Cannot use import statement outside a module';
// Each candidate costs up to two parses of the text.
const CANDIDATES_LIMIT = 500;

const { createRequire, isBuiltin = (name) => safe.startsWith(name, 'node:') || Module.builtinModules.includes(name) } = Module;
const resolveFilename = Module._resolveFilename;
const loaded = new safe.Set();
// The results of require and import, by value, with how to get them again.
const modules = new safe.Map();
const keepModule = safe.uncurry(Map.prototype.set);
const isKept = safe.uncurry(Map.prototype.has);
const eachModule = safe.uncurry(Map.prototype.forEach);
const remember = safe.uncurry(Set.prototype.add);
const eachLoaded = safe.uncurry(Set.prototype.forEach);

let base = { cwd: null, require: null, importer: null, module: null };
let lastRequire;

function rewrite(text) {
  if (!safe.includes(text, 'import')) return text;
  return rewriteCalls(rewriteDeclarations(text));
}

// Replaces import declarations, one refused token at a time, in place and over the same
// lines.
function rewriteDeclarations(text) {
  let out = text;
  for (let i = 0; i < CANDIDATES_LIMIT; i++) {
    const error = parseError(out);
    if (error === null || error.message !== NOT_A_MODULE) break;
    const start = error.offset;
    const declaration = readDeclaration(out, start, IMPORT);
    if (declaration === null) break;
    out = safe.slice(out, 0, start) + declaration.text + safe.slice(out, declaration.end);
  }
  return out;
}

function rewriteCalls(text) {
  const candidate = /(?<![\w$\u0080-\uffff]|\.\s*)import(?=\s*(?:\/\*[^]*?\*\/\s*)?\()/g;
  let out = text;
  if (safe.exec(candidate, out) === null || parseError(out) !== null) return out;
  candidate.lastIndex = 0;
  for (let i = 0; i < CANDIDATES_LIMIT; i++) {
    const found = safe.exec(candidate, out);
    if (found === null) break;
    if (isImportCall(out, found.index)) out = splice(out, found.index, IMPORT);
  }
  return out;
}

// `im ort(` is legal in a string or a comment but never in code; a method called import
// is code too, but takes no number as a parameter.
function isImportCall(text, at) {
  if (parseError(splice(text, at, 'im ort')) === null) return false;
  const paren = safe.indexOf(text, '(', at);
  const call = safe.slice(text, 0, at) + IMPORT + '(0,' + safe.slice(text, paren + 1);
  return parseError(call) === null;
}

function splice(text, at, word) {
  return safe.slice(text, 0, at) + word + safe.slice(text, at + word.length);
}

// The working directory may have been removed; then the last one is used.
function currentDirectory() {
  try {
    return process.cwd();
  } catch {
    return base.cwd ?? '/';
  }
}

// A module that stands for the text of a run: it is located in the working directory, but
// never written there.
function baseFor(cwd) {
  if (base.cwd === cwd) return base;
  const filename = path.join(cwd, '[run]');
  const module = new Module(filename, null);
  module.filename = filename;
  module.paths = Module._nodeModulePaths(cwd);
  module._compile('module.exports = (name, options) => options === undefined ? import(name) : import(name, options)', filename);
  const importer = module.exports;
  module.exports = {};
  base = { cwd, require: tracked(createRequire(filename)), importer, module };
  return base;
}

function tracked(original) {
  const require = function require(id) {
    const exports = original(id);
    noteModule(exports, 'require', noteLoaded(id, original), undefined);
    return exports;
  };
  for (const key of safe.ownKeys(original)) {
    const descriptor = safe.getOwn(original, key);
    if (key !== 'length' && key !== 'name' && key !== 'prototype') safe.defineProperty(require, key, descriptor);
  }
  return require;
}

function noteLoaded(specifier, require) {
  const name = fullName(`${specifier}`, require);
  remember(loaded, name);
  return name;
}

function fullName(name, require) {
  if (safe.startsWith(name, 'node:')) return name;
  if (isBuiltin(name)) return `node:${name}`;
  if (name[0] !== '.') return name;
  try {
    return require.resolve(name);
  } catch {
    return path.resolve(currentDirectory(), name);
  }
}

// JSON is data: it may have changed since, and is carried by its value.
function noteModule(value, how, name, options) {
  if (isKept(modules, value) || safe.exec(/\.json$/, name) !== null) return;
  keepModule(modules, value, { __proto__: null, how, name, options });
}

// Replaces import(name, options) and import declarations in a user's text. `names` are
// the exports that a declaration requests.
async function load(name, options, names) {
  const { importer, require } = baseFor(currentDirectory());
  const namespace = await importer(name, options);
  noteModule(namespace, 'import', noteLoaded(name, require), options);
  if (names !== undefined) requireNames(namespace, name, names);
  return namespace;
}

function requireNames(namespace, specifier, names) {
  for (let i = 0; i < names.length; i++) {
    if (!(names[i] in namespace)) {
      throw new SyntaxError(`The requested module '${specifier}' does not provide an export named '${names[i]}'`);
    }
  }
}

// Gives the user's globals a require, module and exports for the directory in which the
// run starts, unless user code has put its own there.
function refresh() {
  const { require, module } = baseFor(currentDirectory());
  if (require === lastRequire) return;
  const own = safe.getOwn(globalThis, 'require');
  if (own === undefined ? lastRequire === undefined : own.value === lastRequire) {
    setGlobal('require', require);
    setGlobal('module', module);
    setGlobal('exports', module.exports);
  }
  lastRequire = require;
}

function setGlobal(name, value) {
  safe.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}

// As in `node -e`: built-in modules by their names, loaded on first use.
function installBuiltins() {
  for (const name of Module.builtinModules) {
    if (name[0] === '_' || safe.includes(name, '/') || name in globalThis) continue;
    safe.defineProperty(globalThis, name, {
      get() {
        const exports = baseFor(currentDirectory()).require(name);
        setGlobal(name, exports);
        return exports;
      },
      set(value) {
        safe.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: true });
      },
      configurable: true,
      enumerable: false,
    });
  }
}

function install() {
  safe.defineProperty(globalThis, IMPORT, { value: load });
  safe.defineProperty(load, 'name', { value: 'import' });
  installBuiltins();
}

// Gets a module again, as `how` says: its exports, or a promise for them.
function again(how, name, options) {
  if (how === 'import') return load(name, options);
  return baseFor(currentDirectory()).require(name);
}

// The globals that a run gets from us, if they are still ours.
function ownGlobals() {
  const found = safe.list();
  if (lastRequire === undefined || safe.getOwn(globalThis, 'require')?.value !== lastRequire) return found;
  safe.push(found, { __proto__: null, name: 'require', value: lastRequire });
  if (safe.getOwn(globalThis, 'module')?.value === base.module) safe.push(found, { __proto__: null, name: 'module', value: base.module });
  return found;
}

function names() {
  const all = safe.list();
  eachLoaded(loaded, (name) => safe.push(all, name));
  return all;
}

module.exports = {
  __proto__: null,
  install,
  refresh,
  rewrite,
  names,
  currentDirectory,
  again,
  isBuiltin,
  ownGlobals,
  eachModule: (fn) => eachModule(modules, (module, value) => fn(value, module)),
};
//# sourceURL=node:internal/sessile/imports

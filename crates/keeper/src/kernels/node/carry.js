'use strict';
// Carries what the user has created from one kernel to another, in a file.
//
//   dump  the user's names ──► graph ──► file     at once, runs no user code
//   load  file ──► rebuild ──► a fresh kernel     see loading.js
//
// The body of the file is a list of records: one letter, a length, and
//   S  settings, as JSON: the working directory, changes of the environment
//   R  a root: its name, how it is bound, its rank, how many objects it adds, its value
//   M  the modules that values belong to, as JSON
// Roots are in the order in which they have to be created: primitives, what modules and
// Node itself provide, functions, classes, and all other values.

const safe = require('./safe.js');
const state = require('./state.js');
const imports = require('./imports.js');
const environment = require('./environment.js');
const known = require('./known.js');
const code = require('./code.js');
const contents = require('./contents.js');
const { Writer, DumpFile } = require('./bytes.js');
const { Graph } = require('./graph.js');
const { PROPERTY } = require('./kinds.js');
const { isProxy } = require('node:util').types;

const RECORD = { __proto__: null, SETTINGS: 83, ROOT: 82, MODULES: 77 };
const LEXICAL = 128;

const set = safe.uncurry(Map.prototype.set);
const has = safe.uncurry(Map.prototype.has);

let graph = null;

function install() {
  environment.install();
  known.install();
  code.install();
}

// Ends a dump in progress.
function cancel() {
  if (graph !== null) graph.isCancelled = true;
}

// Writes a dump into the new file at `path`. Returns {carried, left, error}.
function dump(path) {
  const done = { __proto__: null, carried: 0, left: safe.list(), error: null };
  let file = null;
  try {
    file = new DumpFile(path);
    contents.withQuietStacks(() => write(file, done));
    file.finish();
  } catch (error) {
    done.carried = 0;
    done.left = safe.list();
    done.error = `the state could not be written down: ${error?.message}`;
    discard(file);
  }
  return done;
}

function discard(file) {
  try {
    if (file !== null) file.remove();
  } catch {
    // Gone already, or its directory is.
  }
}

function write(file, done) {
  const writer = new Writer();
  const sources = new code.Sources();
  const provided = new known.Known();
  const names = state.roots(known.replaced());
  const members = rank(names, provided);
  const roots = inOrder(names);
  graph = new Graph(provided, sources, writer, members);
  try {
    record(file, RECORD.SETTINGS, text(settings(done)));
    for (let i = 0; i < roots.length; i++) {
      const reason = refusal(roots[i]) ?? writeRoot(file, writer, roots[i]);
      if (reason === null) done.carried++;
      else safe.push(done.left, { __proto__: null, name: safe.StringOf(roots[i].name), reason });
    }
    record(file, RECORD.MODULES, text(moduleList(graph.modules)));
  } finally {
    graph = null;
    sources.close();
  }
}

// ---- roots

// Returns why something cannot be a root, whatever its value.
function refusal({ name, found }) {
  if (found === null) return 'it was declared, but never given a value';
  if (typeof name !== 'string') return 'a global symbol cannot be carried';
  if (!('value' in found)) return 'a getter on the global object cannot be carried';
  return null;
}

function writeRoot(file, writer, root) {
  const first = graph.objects.length;
  writer.clear();
  const reason = graph.attempt(root.name, root.found.value);
  if (reason !== null) return reason;
  const value = writer.take();
  writer.string(root.name);
  writer.byte(binding(root));
  writer.byte(root.rank);
  writer.count(graph.objects.length - first);
  const head = writer.take();
  record(file, RECORD.ROOT, head, value);
  return null;
}

function binding({ isLexical, found }) {
  if (isLexical) return LEXICAL;
  return (found.writable ? PROPERTY.WRITABLE : 0) | (found.enumerable ? PROPERTY.ENUMERABLE : 0) | (found.configurable ? PROPERTY.CONFIGURABLE : 0);
}

const PARTS = ['value', 'get', 'set'];
const RANK = { __proto__: null, PRIMITIVE: 0, KNOWN: 1, FUNCTION: 2, CLASS: 3, OTHER: 4 };

// Ranks the roots; returns the members of the classes among them. A method comes with its
// class, and so not before it.
function rank(roots, provided) {
  for (let i = 0; i < roots.length; i++) roots[i].rank = rankOf(roots[i], provided);
  const members = membersOf(roots);
  for (let i = 0; i < roots.length; i++) {
    if (roots[i].rank === RANK.FUNCTION && has(members, roots[i].found.value)) roots[i].rank = RANK.OTHER;
  }
  return members;
}

function inOrder(roots) {
  const sorted = safe.list();
  for (let rank = RANK.PRIMITIVE; rank <= RANK.OTHER; rank++) {
    for (let i = 0; i < roots.length; i++) if (roots[i].rank === rank) sorted[sorted.length] = roots[i];
  }
  return sorted;
}

function rankOf({ found }, provided) {
  const value = found?.value;
  if (!known.isObject(value)) return RANK.PRIMITIVE;
  if (isProxy(value)) return RANK.OTHER;
  if (provided.find(value) !== null) return RANK.KNOWN;
  if (typeof value !== 'function') return RANK.OTHER;
  return code.isClassSource(safe.sourceOf(value)) ? RANK.CLASS : RANK.FUNCTION;
}

// The methods and accessors that come with the classes among the roots, by function:
// {owner, part, key}.
function membersOf(roots) {
  const members = new safe.Map();
  for (let i = 0; i < roots.length; i++) {
    if (roots[i].rank !== RANK.CLASS) continue;
    const owner = roots[i].found.value;
    addMembers(members, owner, owner, 's');
    const prototype = safe.getOwn(owner, 'prototype')?.value;
    if (known.isObject(prototype) && !isProxy(prototype)) addMembers(members, owner, prototype, 'p');
  }
  return members;
}

function addMembers(members, owner, holder, place) {
  const keys = safe.ownKeys(holder);
  for (let i = 0; i < keys.length; i++) {
    const found = safe.getOwn(holder, keys[i]);
    if (keys[i] === 'constructor' || !contents.isMember(owner, found)) continue;
    for (let p = 0; p < PARTS.length; p++) {
      const fn = found[PARTS[p]];
      if (typeof fn === 'function') set(members, fn, { __proto__: null, owner, part: `${place}.${PARTS[p]}`, key: keys[i] });
    }
  }
}

// ---- settings and modules

function settings(done) {
  if (environment.isReplaced()) safe.push(done.left, { __proto__: null, name: 'process.env', reason: 'it was replaced by another object' });
  return { __proto__: null, directory: imports.currentDirectory(), ...environment.changes() };
}

function moduleList(modules) {
  const list = safe.list();
  for (let i = 0; i < modules.length; i++) {
    const { how, name, options } = modules[i];
    safe.push(list, { __proto__: null, how, name, options });
  }
  return list;
}

// ---- records

function text(value) {
  const writer = new Writer();
  writer.string(safe.JSONStringify(value));
  return writer.take();
}

function record(file, letter, ...parts) {
  const writer = new Writer();
  let size = 0;
  for (let i = 0; i < parts.length; i++) size += parts[i].size;
  writer.byte(letter);
  writer.count(size);
  append(file, writer.take());
  for (let i = 0; i < parts.length; i++) append(file, parts[i]);
}

function append(file, { pages }) {
  for (let i = 0; i < pages.length; i++) file.append(pages[i]);
}

module.exports = { __proto__: null, install, dump, cancel, RECORD, RANK, LEXICAL };
//# sourceURL=node:internal/sessile/carry

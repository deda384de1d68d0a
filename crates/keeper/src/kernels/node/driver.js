'use strict';
// Loads the parts of the kernel from the directory of this file, then hides.
//
// Launch: node --no-force-async-hooks-checks DIR/driver.js DIR
//
// Invariants:
// - Node's module system knows none of our parts: a module that it has loaded can be
//   found from any other (require.main, require.cache, children), and then the functions
//   that report a run could be replaced;
// - all parts are loaded before any user code, with everything that they need from Node:
//   a later `require` would go through functions that user code can patch;
// - the exports of a part are frozen.

const { readFileSync } = require('node:fs');
const Module = require('node:module');
const { join } = require('node:path');
const { compileFunction } = require('node:vm');

const parts = { __proto__: null };

function load(name) {
  if (name[0] !== '.') return require(name);
  if (parts[name] === undefined) {
    const part = { __proto__: null, exports: null };
    const text = readFileSync(join(__dirname, name), 'utf8');
    compileFunction(text, ['require', 'module', '__dirname'], { filename: name })(load, part, __dirname);
    parts[name] = Object.freeze(part.exports);
  }
  return parts[name];
}

// Looks like a process that was started without a script.
function hide() {
  process.argv = [process.execPath];
  process.execArgv = [];
  process.mainModule = undefined;
  delete Module.prototype.require.main;
  for (const known of [require.cache, Module._pathCache]) {
    for (const key of Object.keys(known)) delete known[key];
  }
}

const [, , directory] = process.argv;
const { serve } = load('./kernel.js');
hide();
serve(directory);
//# sourceURL=node:internal/sessile/driver

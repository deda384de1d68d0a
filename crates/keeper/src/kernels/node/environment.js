'use strict';
// Environment variables: those of one run, and the changes since the kernel's start.
//
// process.env itself is native and runs no user code; user code may replace it with
// another object, so it is kept here.

const safe = require('./safe.js');

const variables = process.env;
const before = { __proto__: null };

function install() {
  const keys = safe.ownKeys(variables);
  for (let i = 0; i < keys.length; i++) before[keys[i]] = variables[keys[i]];
}

// Sets variables for the duration of a run; returns what `restore` needs.
function set(given) {
  const old = { __proto__: null };
  const keys = safe.ownKeys(given);
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    old[key] = process.env[key];
    process.env[key] = given[key];
  }
  return old;
}

function restore(old) {
  const keys = safe.ownKeys(old);
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    if (old[key] === undefined) delete process.env[key];
    else process.env[key] = old[key];
  }
}

// The difference from the start: {changed, removed}.
function changes() {
  const changed = { __proto__: null };
  const removed = safe.list();
  const keys = safe.ownKeys(variables);
  for (let i = 0; i < keys.length; i++) if (variables[keys[i]] !== before[keys[i]]) changed[keys[i]] = variables[keys[i]];
  const old = safe.ownKeys(before);
  for (let i = 0; i < old.length; i++) if (variables[old[i]] === undefined) safe.push(removed, old[i]);
  return { changed, removed };
}

function apply({ changed, removed }) {
  const keys = safe.ownKeys(changed);
  for (let i = 0; i < keys.length; i++) variables[keys[i]] = changed[keys[i]];
  for (let i = 0; i < removed.length; i++) delete variables[removed[i]];
}

const isReplaced = () => safe.getOwn(process, 'env')?.value !== variables;

module.exports = { __proto__: null, install, set, restore, changes, apply, isReplaced };
//# sourceURL=node:internal/sessile/environment

'use strict';
// Lets a name be declared again as something else.
//
// V8's REPL mode allows let over let and const over const, but neither over the other,
// nor over var or function, nor these over them. So:
// - a top-level const becomes let from the start (at the cost of its constancy);
// - where let meets var or function, the new declaration takes the form of the old one.
//   V8 refuses such a text before it runs anything, so the text is changed and tried
//   again.
//
// Invariant: as in imports.js, only text that V8 treats as code is changed.

const safe = require('./safe.js');
const { lex } = require('./lexer.js');
const { parses, parseError } = require('./evaluate.js');

const LET = 'let  ';
// Looks like the name itself when printed.
const TWIN = '\u200c';

function withLet(text) {
  if (!safe.includes(text, 'const')) return text;
  const lexed = lex(text);
  if (lexed === null) return text;
  let out = text;
  for (let i = 0; i < lexed.tokens.length; i++) {
    const token = lexed.tokens[i];
    if (token.text !== 'const' || token.before === '.') continue;
    if (lexed.isSure || isCode(out, token)) out = swap(out, token.at, 'const', LET);
  }
  return out;
}

// A word cut in two breaks a program, but not a string or a comment.
function isCode(text, token) {
  const broken = `${safe.slice(token.text, 0, 2)} ${safe.slice(token.text, 3)}`;
  return !parses(swap(text, token.at, token.text, broken));
}

function swap(text, at, from, to) {
  return safe.slice(text, 0, at) + to + safe.slice(text, at + from.length);
}

// The text with its declaration of `name` adapted to the existing one, or null if that is
// impossible. `isLexical`: the old one is let or class.
function adapt(text, name, isLexical) {
  const lexed = lex(text);
  if (lexed === null) return null;
  for (let i = 0; i < lexed.tokens.length; i++) {
    const token = lexed.tokens[i];
    if (!token.isWord || token.before === '.') continue;
    const changed = isLexical ? toLexical(text, name, lexed.tokens, i) : toVar(text, name, lexed.tokens, i);
    if (changed !== null) return changed;
  }
  return isLexical ? toBlockLet(text, name) : null;
}

// Changes a var within a block or the head of a loop, where V8 sees it clash with a let;
// after the block, the name means the old one.
function toBlockLet(text, name) {
  const prefix = `let ${name};`;
  const clash = parseError(prefix + text);
  if (clash === null) return null;
  const at = safe.lastIndexOf(text, 'var', clash.offset - prefix.length);
  if (at === -1) return null;
  const changed = swap(text, at, 'var', 'let');
  const next = parseError(prefix + changed);
  return next === null || next.offset > clash.offset ? changed : null;
}

// Whether `text` declares `name` with let or class at its top level.
const declaresLexically = (text, name) => !parses(`var ${name};${text}`);

function toLexical(text, name, tokens, i) {
  const token = tokens[i];
  if (token.text === 'var') {
    const changed = swap(text, token.at, 'var', 'let');
    return declaresLexically(changed, name) ? changed : null;
  }
  if (token.text !== 'function') return null;
  const named = tokens[i + 1]?.text === '*' ? tokens[i + 2] : tokens[i + 1];
  if (named?.text !== name) return null;
  // Declarations are hoisted: the function exists when the first line runs.
  const renamed = swap(text, named.at, name, name + TWIN);
  return parses(renamed) ? `let ${name} = ${name + TWIN};${renamed}` : null;
}

function toVar(text, name, tokens, i) {
  const token = tokens[i];
  if (token.text === 'let' || token.text === 'const') {
    const changed = swap(text, token.at, token.text, 'var');
    return declaresLexically(changed, name) ? null : changed;
  }
  if (token.text !== 'class' || tokens[i + 1]?.text !== name) return null;
  for (let end = i + 2; end < tokens.length; end++) {
    if (tokens[end].text !== '}') continue;
    const close = tokens[end].at;
    const changed = `${safe.slice(text, 0, token.at)}var ${name} = ${safe.slice(text, token.at, close)}};${safe.slice(text, close + 1)}`;
    if (parses(changed)) return changed;
  }
  return null;
}

const isTwin = (name) => name[name.length - 1] === TWIN;

module.exports = { __proto__: null, withLet, adapt, isTwin };
//# sourceURL=node:internal/sessile/redeclare

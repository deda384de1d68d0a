'use strict';
// Splits a text into the tokens outside all brackets, where top-level declarations are.
//
// JavaScript cannot be split into tokens without a full parser: a slash may be a division
// or start a regular expression. The lexer guesses from the token before, and the result
// says so (`isSure`); callers then ask V8 before they change anything. A text in which
// brackets or quotes do not close gives null.

const safe = require('./safe.js');

const SPACE = /(?:\s+|\/\/[^\n\r\u2028\u2029]*|\/\*[^]*?\*\/)+/y;
const NAME = /[#\p{ID_Start}$_\\][\p{ID_Continue}$\u200c\u200d\\]*/uy;
const NUMBER = /\.?\d(?:[\w.]|(?<=[eE])[+-])*/y;
const QUOTED = /"[^"\\\n\r]*(?:\\[^][^"\\\n\r]*)*"|'[^'\\\n\r]*(?:\\[^][^'\\\n\r]*)*'/y;
const REGEX = /\/(?:[^/\\[\n\r]|\\[^\n\r]|\[(?:[^\]\\\n\r]|\\[^\n\r])*\])+\/[\w$]*/y;
const TEMPLATE = /[^`\\$]*(?:(?:\\[^]|\$(?!\{))[^`\\$]*)*(`|\$\{)/y;

const BEFORE_REGEX = words('return typeof instanceof in of new delete void throw case do else yield await');
const BEFORE_PAREN_REGEX = words('if while for with');
const CLOSES = { __proto__: null, ')': '(', ']': '[', '}': '{' };

function words(list) {
  const set = { __proto__: null };
  for (const word of safe.split(list, ' ')) set[word] = true;
  return set;
}

function match(pattern, text, at) {
  pattern.lastIndex = at;
  return safe.exec(pattern, text);
}

class Lexer {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.open = [];
    this.last = { text: '', isWord: false, isValue: false };
    this.tokens = [];
    this.isSure = true;
  }

  run() {
    while (this.at < this.text.length) {
      const space = match(SPACE, this.text, this.at);
      if (space !== null) this.at += space[0].length;
      else if (!this.step()) return null;
    }
    return this.open.length === 0 ? { tokens: this.tokens, isSure: this.isSure } : null;
  }

  step() {
    const { text, at } = this;
    const char = text[at];
    if (char === '"' || char === "'") return this.value(match(QUOTED, text, at));
    if (char === '`') return this.template(at + 1);
    if (char === '/') return this.slash();
    const name = match(NAME, text, at);
    if (name !== null) return this.emit(name[0], true, BEFORE_REGEX[name[0]] !== true || this.last.text === '.');
    const number = match(NUMBER, text, at);
    if (number !== null) return this.value(number);
    if (char === '(' || char === '[' || char === '{') return this.enter(char);
    if (CLOSES[char] !== undefined) return this.leave(char);
    return this.emit(char, false, false);
  }

  // Only tokens outside all brackets are kept; the others still decide what a slash after
  // them means.
  emit(token, isWord, isValue) {
    const entry = { text: token, at: this.at, isWord, isValue, before: this.last.text };
    if (this.open.length === 0) safe.push(this.tokens, entry);
    this.last = entry;
    this.at += token.length;
    return true;
  }

  value(found) {
    return found !== null && this.emit(found[0], false, true);
  }

  slash() {
    this.isSure = false;
    if (this.last.isValue) return this.emit('/', false, false);
    return this.value(match(REGEX, this.text, this.at));
  }

  enter(char) {
    const head = this.last;
    this.emit(char, false, false);
    safe.push(this.open, { char, head });
    return true;
  }

  leave(char) {
    const inner = this.open.pop();
    if (inner === undefined || inner.char === '`') return inner !== undefined && this.template(this.at + 1);
    if (inner.char !== CLOSES[char]) return false;
    const isHead = char === ')' && BEFORE_PAREN_REGEX[inner.head.text] === true;
    return this.emit(char, false, char === '}' ? inner.head.isValue === false && inner.head.text !== ')' : !isHead);
  }

  // From within a template: continues to its end, or into a substitution, whose closing
  // brace returns here through `leave`.
  template(from) {
    const found = match(TEMPLATE, this.text, from);
    if (found === null) return false;
    const end = from + found[0].length;
    if (found[1] === '`') {
      this.at = end - 1;
      return this.emit('`', false, true);
    }
    safe.push(this.open, { char: '`', head: this.last });
    this.last = { text: '', isWord: false, isValue: false };
    this.at = end;
    return true;
  }
}

function lex(text) {
  return new Lexer(text).run();
}

module.exports = { __proto__: null, lex };
//# sourceURL=node:internal/sessile/lexer

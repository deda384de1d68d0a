'use strict';
// Reads one import declaration and writes the awaited call that replaces it.
//
// It gets the position of an `import` token that V8 has refused, so what follows is meant
// as a declaration: names, braces, strings and comments only. If the text does not fit
// that grammar, the result is null, and the user sees V8's own error.

const safe = require('./safe.js');

const TOKEN = /\s+|\/\/[^\n\r\u2028\u2029]*|\/\*[^]*?\*\/|([\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*)|("(?:[^"\\\n]|\\[^])*"|'(?:[^'\\\n]|\\[^])*')|([{}*,:;])/uy;

class Reader {
  constructor(text, at) {
    this.text = text;
    this.at = at;
    this.next();
  }

  // Advances to the next token that is not space: a word, a string, a sign, or
  // null where the grammar of declarations ends.
  next() {
    this.before = this.at;
    for (;;) {
      TOKEN.lastIndex = this.at;
      const found = safe.exec(TOKEN, this.text);
      if (found === null) {
        this.token = null;
        return;
      }
      const token = found[1] ?? found[2] ?? found[3];
      const from = this.at;
      this.at = TOKEN.lastIndex;
      if (token !== undefined) {
        this.token = token;
        this.start = from;
        return;
      }
    }
  }

  take(token) {
    if (this.token !== token) return false;
    this.next();
    return true;
  }

  word() {
    const { token } = this;
    if (token === null || !isWord(token)) return null;
    this.next();
    return token;
  }

  string() {
    const { token } = this;
    if (token === null || !isString(token)) return null;
    this.next();
    return token;
  }
}

const isString = (token) => token[0] === '"' || token[0] === "'";
const isWord = (token) => !isString(token) && safe.exec(/^[{}*,:;]$/, token) === null;

function readDeclaration(text, at, callee) {
  const reader = new Reader(text, at);
  if (!reader.take('import')) return null;
  const clause = { bindings: [], names: [], namespace: null };
  let specifier = reader.string();
  if (specifier === null) {
    if (!readClause(reader, clause) || !reader.take('from')) return null;
    specifier = reader.string();
    if (specifier === null) return null;
  }
  const attributes = readAttributes(reader);
  if (attributes === null) return null;
  let end = reader.before;
  if (reader.token === ';') end = reader.at;
  return { end, text: write(clause, specifier, attributes, callee, text, at, end) };
}

function readClause(reader, clause) {
  if (reader.token !== '{' && reader.token !== '*') {
    const word = reader.word();
    if (word === null) return false;
    bind(clause, 'default', word);
    if (!reader.take(',')) return true;
  }
  if (reader.take('*')) {
    if (!reader.take('as')) return false;
    clause.namespace = reader.word();
    return clause.namespace !== null;
  }
  return readNamed(reader, clause);
}

function readNamed(reader, clause) {
  if (!reader.take('{')) return false;
  while (!reader.take('}')) {
    const quoted = reader.string();
    const name = quoted ?? reader.word();
    if (name === null) return false;
    let local = name;
    if (reader.take('as')) local = reader.word();
    else if (quoted !== null) return false;
    if (local === null) return false;
    bind(clause, name, local);
    if (!reader.take(',') && reader.token !== '}') return false;
  }
  return true;
}

function bind(clause, name, local) {
  safe.push(clause.bindings, name === local ? name : `${name}: ${local}`);
  safe.push(clause.names, isString(name) ? name : `'${name}'`);
}

// `with {type: 'json'}`, as the source of an options object; '' if there is none.
function readAttributes(reader) {
  const keyword = reader.token;
  if (keyword !== 'with' && keyword !== 'assert') return '';
  reader.next();
  if (!reader.take('{')) return null;
  const pairs = [];
  while (!reader.take('}')) {
    const key = reader.string() ?? reader.word();
    if (key === null || !reader.take(':')) return null;
    const value = reader.string();
    if (value === null) return null;
    safe.push(pairs, `${key}: ${value}`);
    if (!reader.take(',') && reader.token !== '}') return null;
  }
  return `{${keyword}: {${safe.join(pairs, ', ')}}}`;
}

function write(clause, specifier, attributes, callee, text, at, end) {
  const options = attributes === '' ? 'undefined' : attributes;
  const names = clause.names.length > 0 ? `, ${options}, [${safe.join(clause.names, ', ')}]` : attributes && `, ${options}`;
  const call = `await ${callee}(${specifier}${names})`;
  const lines = safe.split(safe.slice(text, at, end), '\n').length - 1;
  return declare(clause, call) + ';' + safe.repeat('\n', lines);
}

function declare(clause, call) {
  const { bindings, namespace } = clause;
  const pattern = bindings.length > 0 ? `{${safe.join(bindings, ', ')}}` : null;
  if (namespace === null) return pattern === null ? `void ${call}` : `const ${pattern} = ${call}`;
  const whole = `const ${namespace} = ${call}`;
  return pattern === null ? whole : `${whole}, ${pattern} = ${namespace}`;
}

module.exports = { __proto__: null, readDeclaration };
//# sourceURL=node:internal/sessile/declaration

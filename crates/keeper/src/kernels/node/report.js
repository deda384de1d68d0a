'use strict';
// Texts about a run's outcome: the value of its last expression, and what is printed for
// an error, with the user's own lines and no frame of the driver.
//
// Values and errors belong to the user: any property may be a getter that throws, any
// object a Proxy. Nothing here may throw.

const util = require('node:util');
const safe = require('./safe.js');
const { messageOf, sourceName } = require('./evaluate.js');

const { inspect } = util;
const { isProxy, isNativeError, isUint8Array } = util.types;
const isErrorLike = (value) => typeof value === 'object' && value !== null && !isProxy(value) && (isNativeError(value) || value instanceof safe.Error);

const RESULT_LIMIT = 1 << 20;
const MESSAGE_LIMIT = 1 << 16;
const LINE_LIMIT = 400;
// Enough runs to quote the source of a function that was defined earlier.
const SOURCES = 256;
const sources = new safe.Map();
const setSource = safe.uncurry(Map.prototype.set);
const getSource = safe.uncurry(Map.prototype.get);
const dropSource = safe.uncurry(Map.prototype.delete);

function rememberSource(id, text) {
  setSource(sources, id, text);
  dropSource(sources, id - SOURCES);
}

// The text for `result`, or null for undefined. `notes` gets a note if it is cut.
function resultText(value, notes) {
  if (value === undefined) return null;
  let text;
  try {
    text = inspect(value, { depth: 4, maxStringLength: RESULT_LIMIT, breakLength: 80 });
  } catch (error) {
    safe.push(notes, `the result could not be shown: ${messageText(error)}`);
    return '[object that cannot be shown]';
  }
  if (text.length <= RESULT_LIMIT) return text;
  safe.push(notes, `the result was cut from ${text.length} to ${RESULT_LIMIT} characters`);
  return safe.slice(text, 0, RESULT_LIMIT);
}

// The first bytes of picture files.
const PICTURES = [
  ['image/png', [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ['image/jpeg', [0xff, 0xd8, 0xff]],
];
// Base64 of a large photograph; beyond this size a file is the better answer.
const PICTURE_LIMIT = 12 << 20;

// A whole document, and nothing else.
const SVG = /^\s*(?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE svg[^>]*>\s*)?(?:<!--(?:(?!-->)[^])*-->\s*)*<svg[\s>][^]*<\/svg>\s*$/;

// If a value is the bytes of a picture, its kind and base64; or the text of an SVG;
// otherwise null.
function resultData(value, notes) {
  if (typeof value === 'string') return svgData(value, notes);
  if (typeof value !== 'object' || value === null || isProxy(value) || !isUint8Array(value)) return null;
  const length = safe.lengthOf(value);
  for (let i = 0; i < PICTURES.length; i++) {
    const { 0: kind, 1: magic } = PICTURES[i];
    if (!begins(value, magic)) continue;
    if (length > PICTURE_LIMIT) {
      safe.push(notes, `${kind} of the value was left out: ${length} bytes`);
      return null;
    }
    const bytes = safe.bufferFrom(safe.memoryOf(value), safe.offsetOf(value), length);
    return { __proto__: null, [kind]: safe.bufferText(bytes, 'base64') };
  }
  if (value[0] !== 0x3c || length > PICTURE_LIMIT) return null;
  const bytes = safe.bufferFrom(safe.memoryOf(value), safe.offsetOf(value), length);
  return svgData(safe.bufferText(bytes, 'utf8'), notes);
}

function svgData(text, notes) {
  // Most texts are no SVG, and are not examined further.
  if (!safe.includes(text, '</svg>') || safe.exec(SVG, text) === null) return null;
  if (text.length > PICTURE_LIMIT) {
    safe.push(notes, `image/svg+xml of the value was left out: ${text.length} characters`);
    return null;
  }
  return { __proto__: null, 'image/svg+xml': text };
}

function begins(bytes, magic) {
  for (let i = 0; i < magic.length; i++) if (bytes[i] !== magic[i]) return false;
  return true;
}

function read(object, key) {
  try {
    return object[key];
  } catch {
    return undefined;
  }
}

function messageText(thrown) {
  try {
    const text = isErrorLike(thrown) ? safe.StringOf(read(thrown, 'message')) : inspect(thrown, { depth: 1 });
    return safe.slice(text, 0, MESSAGE_LIMIT);
  } catch {
    return '';
  }
}

// {type, message} of whatever was thrown.
function errorOf(thrown) {
  let type = thrown === null ? 'null' : typeof thrown;
  if (isErrorLike(thrown)) {
    const name = read(thrown, 'name');
    const made = read(read(thrown, 'constructor') ?? {}, 'name');
    type = typeof name === 'string' && name !== 'Error' ? name : made;
    if (typeof type !== 'string' || type === '') type = 'Error';
  }
  return { __proto__: null, type, message: messageText(thrown) };
}

function syntaxErrorOf(details) {
  const text = messageOf(details);
  const type = details.exception?.className ?? 'SyntaxError';
  const prefix = `${type}: `;
  const message = safe.startsWith(text, prefix) ? safe.slice(text, prefix.length) : text;
  return { __proto__: null, type, message: explain(message) };
}

function explain(message) {
  if (message !== "Unexpected token 'export'") return message;
  return "Unexpected token 'export' (a run is not a module: declare without export, its names stay for later runs)";
}

function syntaxText(id, details, error) {
  return `${quote(id, details.lineNumber, details.columnNumber)}${error.type}: ${error.message}\n`;
}

// What is printed on stderr for an uncaught error.
function uncaughtText(thrown) {
  try {
    if (!isErrorLike(thrown)) return `Uncaught ${inspect(thrown)}\n`;
    if (typeof thrown.stack !== 'string') return bareText(thrown);
    const text = withoutDriver(inspect(thrown));
    const place = safe.exec(/<run-(\d+)>:(\d+):(\d+)/, text);
    if (place === null) return `${text}\n`;
    return `${quote(+place[1], place[2] - 1, place[3] - 1)}${text}\n`;
  } catch {
    return bareText(thrown);
  }
}

function bareText(thrown) {
  const { type, message } = errorOf(thrown);
  return `Uncaught ${type}: ${message}\n`;
}

// The source line with a caret under it, as Node prints it. There is no source for runs
// long ago.
function quote(id, line, column) {
  const source = getSource(sources, id);
  const at = `${sourceName(id)}:${line + 1}\n`;
  if (source === undefined) return `${at}\n`;
  const text = safe.split(source, /\r\n|[\n\r\u2028\u2029]/)[line];
  if (text === undefined || text.length > LINE_LIMIT) return `${at}\n`;
  const indent = /[^\t]/g[Symbol.replace](safe.slice(text, 0, column), ' ');
  return `${at}${text}\n${indent}^\n\n`;
}

// Removes the frames through which the driver entered the user's code: from Session.post
// or Script.runInThisContext down to the tick queue, and any frame of the driver itself.
function withoutDriver(text) {
  const lines = safe.split(text, '\n');
  const out = [];
  let entered = false;
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i];
    const isFrame = safe.exec(/^\s+at /, line) !== null;
    if (!isFrame) entered = false;
    const isDriver = isFrame && safe.exec(/\(node:inspector:|node:internal\/sessile\/|^    at Script\.runInThisContext \(node:vm:/, line) !== null;
    if (isDriver) entered = true;
    if (!isDriver && !(isFrame && entered && safe.includes(line, 'processTicksAndRejections'))) safe.push(out, line);
    // The line of the last frame also opens the braces around further properties.
    else if (safe.exec(/ \{$/, line) !== null) out[out.length - 1] += ' {';
  }
  return safe.join(out, '\n');
}

// The run whose text an error's stack names first, or 0.
function runNamedBy(thrown) {
  try {
    const place = isErrorLike(thrown) ? safe.exec(/<run-(\d+)>:/, `${thrown.stack}`) : null;
    return place === null ? 0 : +place[1];
  } catch {
    return 0;
  }
}

module.exports = { __proto__: null, rememberSource, resultText, resultData, errorOf, syntaxErrorOf, syntaxText, uncaughtText, runNamedBy };
//# sourceURL=node:internal/sessile/report

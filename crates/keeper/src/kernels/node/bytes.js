'use strict';
// Bytes of a dump: writes numbers, strings and blocks into pages and reads them back; and
// the file that holds them.
//
//   MAGIC, version (u32), length of the body (f64), CRC-32 of the body (u32), body
//
// Invariant: a reader never leaves its bounds, and never allocates more than the bytes
// that are there justify; anything else is `Damaged`.

const fs = require('node:fs');
const safe = require('./safe.js');

const { openSync, closeSync, writeSync, readFileSync, unlinkSync } = fs;
const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants;
const latin1Write = safe.uncurry(Buffer.prototype.latin1Write);
const ucs2Write = safe.uncurry(Buffer.prototype.ucs2Write);
const latin1Slice = safe.uncurry(Buffer.prototype.latin1Slice);
const ucs2Slice = safe.uncurry(Buffer.prototype.ucs2Slice);
const { byteLength, allocUnsafeSlow } = Buffer;
const setBytes = safe.uncurry(Uint8Array.prototype.set);
const bytesOf = safe.uncurry(Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), 'byteLength').get);

const MAGIC = 'sessile node dump\n';
const VERSION = 1;
const HEAD = MAGIC.length + 4 + 8 + 4;
const PAGE = 64 * 1024;
// Shorter strings are written faster by hand than by a call into Node.
const SHORT = 24;

const double = new Float64Array(1);
const doubleBytes = new Uint8Array(double.buffer);

class Damaged {
  constructor(text) {
    this.text = text;
  }
}

const TABLE = makeTable();

function makeTable() {
  const table = new safe.Int32Array(256);
  for (let i = 0; i < 256; i++) {
    let value = i;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
    table[i] = value;
  }
  return table;
}

function crc32(before, bytes, from, to) {
  let crc = ~before;
  for (let i = from; i < to; i++) crc = TABLE[(crc ^ bytes[i]) & 0xff] ^ (crc >>> 8);
  return ~crc;
}

class Writer {
  constructor() {
    this.pages = safe.list();
    this.page = allocUnsafeSlow(PAGE);
    this.at = 0;
    this.size = 0;
  }

  // Starts over: nothing that was written since the last time is kept.
  clear() {
    this.pages = safe.list();
    this.at = 0;
    this.size = 0;
  }

  reserve(count) {
    if (this.at + count > PAGE) this.turn();
  }

  turn() {
    if (this.at > 0) this.add(safe.subarray(this.page, 0, this.at));
    this.page = allocUnsafeSlow(PAGE);
    this.at = 0;
  }

  add(bytes) {
    this.pages[this.pages.length] = bytes;
    this.size += bytesOf(bytes);
  }

  // Returns what was written, as a list of pages; the writer starts over.
  take() {
    this.turn();
    const { pages, size } = this;
    this.clear();
    return { pages, size };
  }

  byte(value) {
    this.reserve(1);
    this.page[this.at++] = value;
  }

  // A whole number from 0 to 2^53.
  count(value) {
    this.reserve(8);
    let rest = value;
    while (rest >= 128) {
      this.page[this.at++] = (rest % 128) | 128;
      rest = (rest - (rest % 128)) / 128;
    }
    this.page[this.at++] = rest;
  }

  double(value) {
    this.reserve(8);
    double[0] = value;
    for (let i = 0; i < 8; i++) this.page[this.at++] = doubleBytes[i];
  }

  // One byte per character for ASCII, else two, which preserves lone surrogates.
  string(text) {
    const { length } = text;
    if (length < SHORT && this.short(text, length)) return;
    const isAscii = byteLength(text) === length;
    this.count(length * 2 + (isAscii ? 0 : 1));
    const size = isAscii ? length : length * 2;
    const target = this.space(size);
    if (isAscii) latin1Write(target.bytes, text, target.at, size);
    else ucs2Write(target.bytes, text, target.at, size);
  }

  short(text, length) {
    this.reserve(SHORT + 2);
    const { page, at } = this;
    page[at] = length * 2;
    for (let i = 0; i < length; i++) {
      const code = safe.charCodeAt(text, i);
      if (code > 127) return false;
      page[at + 1 + i] = code;
    }
    this.at = at + 1 + length;
    return true;
  }

  // Reserves `size` bytes: in the page, or in a separate block.
  space(size) {
    if (size <= PAGE / 4) {
      this.reserve(size);
      this.at += size;
      return { bytes: this.page, at: this.at - size };
    }
    this.turn();
    const bytes = allocUnsafeSlow(size);
    this.add(bytes);
    return { bytes, at: 0 };
  }

  // Large blocks are not copied: nothing changes them before they are in the file.
  block(bytes) {
    const size = bytesOf(bytes);
    this.count(size);
    if (size > PAGE / 4) {
      this.turn();
      this.add(bytes);
    } else {
      const target = this.space(size);
      setBytes(target.bytes, bytes, target.at);
    }
  }
}

class Reader {
  constructor(bytes, at, end) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  need(count) {
    if (count > this.end - this.at) throw new Damaged('it ends too early');
  }

  byte() {
    this.need(1);
    return this.bytes[this.at++];
  }

  count() {
    let value = 0;
    for (let scale = 1; scale <= 2 ** 49; scale *= 128) {
      const byte = this.byte();
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
    throw new Damaged('a number is too long');
  }

  double() {
    this.need(8);
    for (let i = 0; i < 8; i++) doubleBytes[i] = this.bytes[this.at++];
    return double[0];
  }

  string() {
    const head = this.count();
    const isAscii = head % 2 === 0;
    const size = isAscii ? head / 2 : head - 1;
    this.need(size);
    const from = this.at;
    this.at += size;
    return isAscii ? latin1Slice(this.bytes, from, this.at) : ucs2Slice(this.bytes, from, this.at);
  }

  block() {
    const size = this.count();
    this.need(size);
    this.at += size;
    return safe.subarray(this.bytes, this.at - size, this.at);
  }

  // A part of these bytes with its own reader.
  part() {
    const size = this.count();
    this.need(size);
    this.at += size;
    return new Reader(this.bytes, this.at - size, this.at);
  }
}

// A new file whose head is written last: an unfinished file is not valid.
class DumpFile {
  constructor(path) {
    this.path = path;
    this.fd = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    this.length = 0;
    this.crc = 0;
  }

  append(bytes) {
    const size = bytesOf(bytes);
    for (let at = 0; at < size; ) at += writeSync(this.fd, bytes, at, size - at, HEAD + this.length + at);
    this.crc = crc32(this.crc, bytes, 0, size);
    this.length += size;
  }

  finish() {
    const head = allocUnsafeSlow(HEAD);
    latin1Write(head, MAGIC, 0, MAGIC.length);
    const at = MAGIC.length;
    putWord(head, at, VERSION);
    double[0] = this.length;
    setBytes(head, doubleBytes, at + 4);
    putWord(head, at + 12, this.crc);
    writeSync(this.fd, head, 0, HEAD, 0);
    closeSync(this.fd);
  }

  remove() {
    closeSync(this.fd);
    unlinkSync(this.path);
  }
}

function putWord(bytes, at, value) {
  for (let i = 0; i < 4; i++) bytes[at + i] = (value >>> (8 * i)) & 0xff;
}

function word(bytes, at) {
  return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
}

// A reader of the file's body, after checking that it is complete and of a known version.
function openDump(path) {
  const bytes = readFileSync(path);
  const size = bytesOf(bytes);
  if (size < HEAD || latin1Slice(bytes, 0, MAGIC.length) !== MAGIC) throw new Damaged('it is not a dump of a Node kernel');
  const at = MAGIC.length;
  const version = word(bytes, at);
  if (version !== VERSION) throw new Damaged(`it is of version ${version}, and only version ${VERSION} is known`);
  setBytes(doubleBytes, safe.subarray(bytes, at + 4, at + 12));
  if (double[0] !== size - HEAD) throw new Damaged('it has not the length that it should have');
  if (word(bytes, at + 12) !== crc32(0, bytes, HEAD, size)) throw new Damaged('its checksum is wrong');
  return new Reader(bytes, HEAD, size);
}

module.exports = { __proto__: null, Writer, Reader, Damaged, DumpFile, openDump };
//# sourceURL=node:internal/sessile/bytes

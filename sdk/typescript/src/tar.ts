/**
 * Trees as tar streams: enough of POSIX pax for files, directories and links.
 *
 * What is unpacked may have been made by hostile code: nothing is written
 * outside of the destination, and no link is followed.
 */
import type { Stats } from "node:fs";
import { chmod, lstat, mkdir, open, readdir, readlink, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { SessileError } from "./errors.js";

const BLOCK = 512;

export interface Progress {
  files: number;
  bytes: number;
}

export interface PackOptions {
  /** Paths, relative to the tree and with `/`, that are left out; of a directory all that is in it. */
  ignore?: (path: string, isDirectory: boolean) => boolean;
  onProgress?: (progress: Progress) => void;
}

/** A directory's content as a tar stream. */
export async function* pack(root: string, options: PackOptions = {}): AsyncGenerator<Buffer> {
  const progress: Progress = { files: 0, bytes: 0 };
  const todo = [""];
  for (let path = todo.pop(); path !== undefined; path = todo.pop()) {
    const entries = await readdir(join(root, path), { withFileTypes: true });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const inner = path === "" ? entry.name : `${path}/${entry.name}`;
      if (options.ignore?.(inner, entry.isDirectory())) continue;
      if (entry.isDirectory()) todo.push(inner);
      yield* packOne(join(root, inner), inner, progress);
      options.onProgress?.({ ...progress });
    }
  }
  yield Buffer.alloc(2 * BLOCK);
}

async function* packOne(place: string, path: string, progress: Progress): AsyncGenerator<Buffer> {
  const stats = await lstat(place);
  if (stats.isDirectory()) yield header(`${path}/`, "5", stats, 0);
  else if (stats.isSymbolicLink()) yield header(path, "2", stats, 0, await readlink(place));
  else if (stats.isFile()) yield* packFile(place, path, progress);
  // Sockets, pipes and devices have no content to carry.
}

/** As long as its head says, though somebody may write to the file meanwhile. */
async function* packFile(place: string, path: string, progress: Progress): AsyncGenerator<Buffer> {
  const file = await open(place, "r");
  try {
    const stats = await file.stat();
    yield header(path, "0", stats, stats.size);
    progress.files += 1;
    let left = stats.size;
    while (left > 0) {
      const buffer = Buffer.allocUnsafe(Math.min(left, 256 * 1024));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
      if (bytesRead === 0) {
        yield Buffer.alloc(left);
        break;
      }
      left -= bytesRead;
      progress.bytes += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
    const rest = stats.size % BLOCK;
    if (rest > 0) yield Buffer.alloc(BLOCK - rest);
  } finally {
    await file.close();
  }
}

function header(path: string, type: string, stats: Stats, size: number, link = ""): Buffer {
  const records: [string, string][] = [];
  if (Buffer.byteLength(path) > 100) records.push(["path", path]);
  if (Buffer.byteLength(link) > 100) records.push(["linkpath", link]);
  if (size >= 8 ** 11) records.push(["size", String(size)]);
  const plain = block(path, type, stats.mode, size, Math.floor(stats.mtimeMs / 1000), link);
  if (records.length === 0) return plain;
  const body = Buffer.from(records.map(([key, value]) => record(key, value)).join(""));
  const padding = Buffer.alloc((BLOCK - (body.length % BLOCK)) % BLOCK);
  return Buffer.concat([block("pax", "x", 0o644, body.length, 0, ""), body, padding, plain]);
}

/** `LENGTH key=value\n`, where LENGTH counts itself. */
function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  let length = Buffer.byteLength(rest) + 1;
  while (String(length).length + Buffer.byteLength(rest) !== length) length += 1;
  return `${length}${rest}`;
}

function block(path: string, type: string, mode: number, size: number, mtime: number, link: string): Buffer {
  const out = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, width: number) =>
    out.write(Math.max(0, Math.min(value, 8 ** (width - 1) - 1)).toString(8).padStart(width - 1, "0"), at, "latin1");
  Buffer.from(path).copy(out, 0, 0, 100);
  octal(mode & 0o7777, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(mtime, 136, 12);
  out.write("        ", 148, "latin1");
  out.write(type, 156, "latin1");
  Buffer.from(link).copy(out, 157, 0, 100);
  out.write("ustar\x0000", 257, "latin1");
  const sum = out.reduce((total, byte) => total + byte, 0);
  out.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return out;
}

/** Unpacks a tar stream into a directory, which is made if it is not there. */
export async function unpack(stream: AsyncIterable<Uint8Array>, root: string, options: { onProgress?: (progress: Progress) => void } = {}): Promise<Progress> {
  const progress: Progress = { files: 0, bytes: 0 };
  const reader = new Blocks(stream);
  const modes: [string, number][] = [];
  let extra: Record<string, string> = {};
  await mkdir(root, { recursive: true });
  for (;;) {
    const head = await reader.take(BLOCK);
    if (!head || head.every((byte) => byte === 0)) break;
    const entry = parseHead(head, extra);
    if (entry.type === "x" || entry.type === "L" || entry.type === "K") {
      extra = { ...extra, ...(await extended(reader, entry)) };
      continue;
    }
    extra = {};
    await unpackOne(reader, root, entry, modes, progress);
    options.onProgress?.({ ...progress });
  }
  // A directory without write permission could not be filled.
  for (const [place, mode] of modes.reverse()) await chmod(place, mode);
  for await (const _ of reader.rest()) void _;
  return progress;
}

interface Entry {
  path: string;
  type: string;
  size: number;
  mode: number;
  link: string;
}

function parseHead(head: Buffer, extra: Record<string, string>): Entry {
  const text = (at: number, width: number) => {
    const field = head.subarray(at, at + width);
    const end = field.indexOf(0);
    return field.subarray(0, end < 0 ? width : end).toString("utf8");
  };
  const sum = head.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 32 : byte), 0);
  if (parseInt(text(148, 8).trim(), 8) !== sum) throw bad("a header's checksum is wrong");
  const prefix = text(257, 5) === "ustar" ? text(345, 155) : "";
  const path = extra["path"] ?? (prefix ? `${prefix}/${text(0, 100)}` : text(0, 100));
  const size = Number(extra["size"] ?? parseInt(text(124, 12).trim() || "0", 8));
  if (!Number.isSafeInteger(size) || size < 0) throw bad(`the size of ${path} is none`);
  const type = text(156, 1) || "0";
  return { path, type, size, mode: parseInt(text(100, 8).trim() || "0", 8) & 0o777, link: extra["linkpath"] ?? text(157, 100) };
}

/** Names longer than their fields, in the two ways that are in use. */
async function extended(reader: Blocks, entry: Entry): Promise<Record<string, string>> {
  if (entry.size > 1 << 20) throw bad("a header is too large");
  const body = (await reader.take(entry.size)) ?? Buffer.alloc(0);
  await reader.skip(padding(entry.size));
  if (entry.type !== "x") return { [entry.type === "L" ? "path" : "linkpath"]: body.toString("utf8").replace(/\0+$/, "") };
  const records: Record<string, string> = {};
  for (let at = 0; at < body.length; ) {
    const length = parseInt(body.subarray(at, at + 20).toString("latin1"), 10);
    if (!(length > 0)) throw bad("a header is not understood");
    const [, key, value] = /^\d+ ([^=]+)=([^]*)\n$/.exec(body.subarray(at, at + length).toString("utf8")) ?? [];
    if (key !== undefined && value !== undefined) records[key] = value;
    at += length;
  }
  return records;
}

async function unpackOne(reader: Blocks, root: string, entry: Entry, modes: [string, number][], progress: Progress): Promise<void> {
  const place = await inside(root, entry.path);
  if (entry.type === "5") {
    if (place !== root) await mkdir(place, { recursive: true });
    if (place !== root && entry.mode) modes.push([place, entry.mode]);
  } else if (entry.type === "2") {
    await replace(place);
    await symlink(entry.link, place);
  } else if (entry.type === "0" || entry.type === "7") {
    await replace(place);
    // "wx" makes it anew, and follows no link that came before.
    const file = await open(place, "wx", entry.mode || 0o644);
    try {
      for await (const piece of reader.pieces(entry.size)) {
        await file.writeFile(piece);
        progress.bytes += piece.length;
      }
    } finally {
      await file.close();
    }
    progress.files += 1;
    await reader.skip(padding(entry.size));
    return;
  }
  await reader.skip(entry.size + padding(entry.size));
}

async function replace(place: string): Promise<void> {
  const there = await lstat(place).catch(() => undefined);
  if (there?.isDirectory()) throw bad(`${place} is a directory here`);
  if (there) await rm(place);
}

/** Where an entry goes, with the directories above it made; none of them is a link. */
async function inside(root: string, path: string): Promise<string> {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (path.startsWith("/") || parts.includes("..")) throw bad(`${JSON.stringify(path)} leads outside`);
  let place = root;
  for (const [at, part] of parts.entries()) {
    place = join(place, part);
    if (at === parts.length - 1) break;
    const there = await lstat(place).catch(() => undefined);
    if (there && !there.isDirectory()) throw bad(`${JSON.stringify(path)} leads through ${place}, which is no directory`);
    if (!there) await mkdir(place);
  }
  return place;
}

function padding(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}

function bad(why: string): SessileError {
  return new SessileError(`the archive is not unpacked further: ${why}`, { code: "bad_archive" });
}

/** A stream, taken in parts of known length. */
class Blocks {
  private readonly source: AsyncIterator<Uint8Array>;
  private held: Buffer = Buffer.alloc(0);

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.source = stream[Symbol.asyncIterator]();
  }

  /** So many bytes; `undefined` at the end. */
  async take(length: number): Promise<Buffer | undefined> {
    const pieces: Buffer[] = [];
    for await (const piece of this.pieces(length, "may end")) pieces.push(piece);
    const all = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
    return all.length === length ? all : undefined;
  }

  async skip(length: number): Promise<void> {
    for await (const _ of this.pieces(length)) void _;
  }

  async *pieces(length: number, end: "may end" | "is an error" = "is an error"): AsyncGenerator<Buffer> {
    let left = length;
    while (left > 0) {
      if (this.held.length === 0 && !(await this.more())) {
        if (end === "may end") return;
        throw bad("it ends too early");
      }
      const piece = this.held.subarray(0, left);
      this.held = this.held.subarray(piece.length);
      left -= piece.length;
      yield piece;
    }
  }

  async *rest(): AsyncGenerator<Buffer> {
    while (await this.more()) yield this.held;
  }

  private async more(): Promise<boolean> {
    const { done, value } = await this.source.next();
    if (done) return false;
    this.held = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    return true;
  }
}

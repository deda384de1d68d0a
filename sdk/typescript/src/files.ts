/** The files of a session's workspace. Paths are relative to it, or absolute within it. */
import { Readable } from "node:stream";
import type { Call, Client } from "./client.js";
import { NotFoundError } from "./errors.js";
import type { SignalOption } from "./run.js";
import { type Camel, camel, given } from "./shapes.js";
import { type PackOptions, type Progress, pack, unpack } from "./tar.js";

/** A file, directory or link. */
export type FileEntry = Camel<{
  path: string;
  name: string;
  type: "file" | "directory" | "symlink" | "other";
  size: number;
  /** As `0644`. */
  mode: string;
  modified: string;
  /** Of a link. */
  target?: string;
}>;

/** Something that happened to a file. */
export type FileChange = { type: string; path?: string } & Record<string, unknown>;

export interface ReadOptions extends SignalOption {
  /** The first byte. */
  start?: number;
  /** The byte after the last. */
  end?: number;
}

export interface WriteOptions extends SignalOption {
  /** As `0644`. */
  mode?: string;
  /** Make the directories above it; default: true. */
  parents?: boolean;
}

/** More levels than trees have. */
const DEEP = 1000;

/** The most entries that the server lists at once. */
const MOST = 100_000;

export class Files {
  private readonly path: string;

  constructor(
    private readonly client: Client,
    session: string,
    /** Throws if the session was ended here. */
    private readonly assertOpen: () => void = () => undefined,
  ) {
    this.path = `${session}/files`;
  }

  /** The client, while the session is there: the server would still answer for the directory. */
  private get open(): Client {
    this.assertOpen();
    return this.client;
  }

  /** A file's bytes. */
  async read(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    const pieces: Buffer[] = [];
    for await (const piece of await this.readStream(path, options)) pieces.push(piece as Buffer);
    return Buffer.concat(pieces);
  }

  /** A file as text. */
  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return Buffer.from(await this.read(path, options)).toString("utf8");
  }

  /** A file's bytes as they come, at any size. */
  async readStream(path: string, options: ReadOptions = {}): Promise<Readable> {
    const { start = 0, end, signal } = options;
    const isPart = start > 0 || end !== undefined;
    const headers: Record<string, string> = isPart ? { range: `bytes=${start}-${end === undefined ? "" : end - 1}` } : {};
    return this.open.bytes({ method: "GET", path: `${this.path}/content`, query: { path }, headers, signal, lane: "wait" });
  }

  /** Writes a file: text, bytes, or what makes a stream of them. */
  async write(path: string, content: string | Uint8Array | (() => Readable), options: WriteOptions = {}): Promise<FileEntry> {
    const { mode, parents = true, signal } = options;
    const body = typeof content === "string" ? Buffer.from(content) : content;
    const headers = { "content-type": "application/octet-stream" };
    const call: Call = { method: "PUT", path: `${this.path}/content`, query: { path, mode, parents }, body, headers, signal, lane: "wait", repeatable: "safe" };
    return camel(await this.open.json<FileEntry>(call));
  }

  /** What is in a directory, `depth` levels of it, or all with `recursive`. */
  async list(path = ".", options: SignalOption & { depth?: number; recursive?: boolean } = {}): Promise<FileEntry[]> {
    const { recursive, depth = recursive ? DEEP : undefined, signal } = options;
    const answer = await this.open.json<{ entries: FileEntry[] }>({ method: "GET", path: this.path, query: { path: path || ".", depth, limit: MOST }, signal });
    return answer.entries.map(camel);
  }

  async stat(path: string, options: SignalOption = {}): Promise<FileEntry> {
    return camel(await this.open.json<FileEntry>({ method: "GET", path: `${this.path}/stat`, query: { path }, signal: options.signal }));
  }

  async exists(path: string, options: SignalOption = {}): Promise<boolean> {
    try {
      await this.stat(path, options);
      return true;
    } catch (error) {
      if (error instanceof NotFoundError && error.code !== "session_not_found") return false;
      throw error;
    }
  }

  /** Makes a directory, with those above it. */
  async makeDirectory(path: string, options: SignalOption & { parents?: boolean } = {}): Promise<void> {
    const { parents = true, signal } = options;
    await this.open.json({ method: "POST", path: `${this.path}/directory`, json: { path, parents }, signal });
  }

  async move(from: string, to: string, options: SignalOption & { overwrite?: boolean } = {}): Promise<void> {
    const { overwrite, signal } = options;
    await this.open.json({ method: "POST", path: `${this.path}/move`, json: { from, to, ...given({ overwrite }) }, signal });
  }

  async remove(path: string, options: SignalOption & { recursive?: boolean } = {}): Promise<void> {
    const { recursive, signal } = options;
    await this.open.json({ method: "DELETE", path: this.path, query: { path, recursive }, signal });
  }

  /** Brings a directory of this machine into the session. */
  async upload(from: string, to = ".", options: SignalOption & PackOptions = {}): Promise<Progress> {
    let sent: Progress = { files: 0, bytes: 0 };
    const onProgress = (progress: Progress) => {
      sent = progress;
      options.onProgress?.(progress);
    };
    const body = () => Readable.from(pack(from, { ...given({ ignore: options.ignore }), onProgress }), { objectMode: false });
    const headers = { "content-type": "application/x-tar" };
    await this.open.json({ method: "PUT", path: `${this.path}/archive`, query: { path: to }, body, headers, signal: options.signal, lane: "wait", repeatable: "safe" });
    return sent;
  }

  /** Brings a directory of the session to this machine. */
  async download(from: string, to: string, options: SignalOption & { onProgress?: (progress: Progress) => void } = {}): Promise<Progress> {
    const { signal, ...others } = options;
    const response = await this.open.bytes({ method: "GET", path: `${this.path}/archive`, query: { path: from }, signal, lane: "wait" });
    return unpack(response, to, others);
  }

  /** What happens to the files below a path, as it happens, until the session ends. Begins with `ready`. `recursive: false`: only to those right in it. */
  async *watch(path = ".", options: SignalOption & { recursive?: boolean } = {}): AsyncGenerator<FileChange> {
    const { recursive = true, signal } = options;
    const reopen = (): Call => ({ method: "GET", path: `${this.path}/watch`, query: { path, recursive }, lane: "wait" });
    for await (const { event, data } of this.open.events(reopen, ({ event }) => event === "ended", signal)) {
      if (event === "ended") return;
      yield { ...(JSON.parse(data) as Record<string, unknown>), type: event };
    }
  }
}

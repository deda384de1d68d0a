/**
 * Codebases: directories at the server, to make sandboxes from. They are
 * reached through the files of a session that is there for nothing else.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import type { Client } from "./client.js";
import { CodebaseNotFoundError, FileNotFoundError, SessileError, SessionClosedError, SessionNotFoundError, UploadError } from "./errors.js";
import { type FileEntry, Files } from "./files.js";
import type { SignalOption } from "./run.js";
import { type Schemas, given } from "./shapes.js";

/** Files that are kept at the server. */
export interface Codebase {
  readonly id: string;
  readonly name: string;
  readonly ownerId: string;
  /** Bytes. */
  readonly size: number;
  readonly fileCount: number;
}

export interface UploadResult {
  readonly codebaseId: string;
  readonly filePath: string;
  /** Bytes. */
  readonly size: number;
  /** SHA-256, in hex. */
  readonly checksum: string;
}

/** In the server's first workspace root; on this machine in the user's directory for data. */
const FOLDER = "sessile-codebases";

/** The session is started again when it is needed again. */
const IDLE = "2m";

export class Codebases {
  readonly #client: Client;
  readonly #env: NodeJS.ProcessEnv;
  private starting: Promise<Files> | undefined;

  constructor(client: Client, env: NodeJS.ProcessEnv) {
    this.#client = client;
    this.#env = env;
  }

  async create(name: string, options: SignalOption & { ownerId?: string } = {}): Promise<Codebase> {
    const { ownerId = "", ...others } = options;
    const id = `cb_${randomBytes(8).toString("hex")}`;
    const place = this.place(id);
    const files = await this.files();
    await files.makeDirectory(place, others);
    await files.write(`${place}.json`, JSON.stringify({ name, owner_id: ownerId }), others);
    return { id, name, ownerId, size: 0, fileCount: 0 };
  }

  async get(id: string, options: SignalOption = {}): Promise<Codebase> {
    const place = this.place(id);
    return this.found(id, async (files) => {
      const about = JSON.parse(await files.readText(`${place}.json`, options)) as { name: string; owner_id: string };
      const inside = (await files.list(place, { ...options, recursive: true })).filter(({ type }) => type !== "directory");
      const size = inside.reduce((sum, file) => sum + file.size, 0);
      return { id, name: about.name, ownerId: about.owner_id, size, fileCount: inside.length };
    });
  }

  async list(options: SignalOption & { ownerId?: string } = {}): Promise<Codebase[]> {
    const { ownerId, ...others } = options;
    const entries = await (await this.files()).list(this.#client.isLocal ? "." : FOLDER, others);
    const ids = entries.filter(({ name, type }) => type === "directory" && name.startsWith("cb_")).map(({ name }) => name);
    const all = await Promise.all(ids.map((id) => this.get(id, others)));
    return all.filter((codebase) => ownerId === undefined || codebase.ownerId === ownerId);
  }

  async delete(id: string, options: SignalOption = {}): Promise<void> {
    const place = this.place(id);
    await this.found(id, async (files) => {
      await files.remove(place, { ...options, recursive: true });
      await files.remove(`${place}.json`, options);
    });
  }

  async upload(id: string, path: string, content: string | Uint8Array, options: SignalOption = {}): Promise<UploadResult> {
    const bytes = Buffer.from(content as Uint8Array);
    const files = await this.files();
    if (!(await files.exists(this.place(id), options))) throw new CodebaseNotFoundError(id);
    try {
      await files.write(this.place(id, path), bytes, options);
    } catch (error) {
      throw error instanceof SessileError && error.code !== "aborted" ? new UploadError(path, id, error) : error;
    }
    return { codebaseId: id, filePath: path, size: bytes.length, checksum: createHash("sha256").update(bytes).digest("hex") };
  }

  async download(id: string, path: string, options: SignalOption = {}): Promise<Uint8Array> {
    return this.inside(id, path, (files, place) => files.read(place, options));
  }

  /** Paths are relative to the codebase. */
  async listFiles(id: string, path = "", options: SignalOption & { recursive?: boolean } = {}): Promise<FileEntry[]> {
    const { recursive, ...others } = options;
    const above = `${this.place(id)}/`;
    const entries = await this.inside(id, path, (files, place) => files.list(place, { ...others, ...given({ recursive }) }));
    return entries.map((entry) => ({ ...entry, path: entry.path.slice(above.length) }));
  }

  /** Brings a directory of this machine into a codebase. */
  async uploadTree(id: string, from: string, options: SignalOption & { ignore?: (path: string) => boolean } = {}): Promise<void> {
    await (await this.files()).upload(from, this.place(id), options);
  }

  /** The workspace of a sandbox that is made from it. */
  async directory(id: string, options: SignalOption = {}): Promise<string> {
    await this.get(id, options);
    return this.#client.isLocal ? join(this.localFolder(), this.place(id)) : this.place(id);
  }

  private place(id: string, path = ""): string {
    if (!/^cb_[0-9A-Za-z]+$/.test(id)) throw new CodebaseNotFoundError(id);
    const base = this.#client.isLocal ? id : `${FOLDER}/${id}`;
    const inner = innerPath(path);
    return inner ? `${base}/${inner}` : base;
  }

  /** Work on a codebase: a file of ours that is not there means that it is not. */
  private async found<T>(id: string, work: (files: Files) => Promise<T>): Promise<T> {
    const files = await this.files();
    try {
      return await work(files);
    } catch (error) {
      throw error instanceof FileNotFoundError ? new CodebaseNotFoundError(id) : error;
    }
  }

  /** Work on a file of a codebase, of which either may not be there. */
  private async inside<T>(id: string, path: string, work: (files: Files, place: string) => Promise<T>): Promise<T> {
    const files = await this.files();
    try {
      return await work(files, this.place(id, path));
    } catch (error) {
      if (!(error instanceof FileNotFoundError)) throw error;
      await this.get(id);
      const { code, hint, status } = error;
      throw new FileNotFoundError(`there is no ${path} in the codebase ${id}`, { code, hint, ...given({ status }) });
    }
  }

  /** The files of the session that is there for them. One that has ended is started again. */
  private async files(): Promise<Files> {
    const there = this.starting;
    if (there) {
      try {
        const files = await there;
        await files.stat(".");
        return files;
      } catch (error) {
        if (!(error instanceof SessionClosedError || error instanceof SessionNotFoundError)) throw error;
        if (this.starting === there) this.starting = undefined;
      }
    }
    this.starting ??= this.start().catch((error: unknown) => {
      this.starting = undefined;
      throw error;
    });
    return this.starting;
  }

  private async start(): Promise<Files> {
    const { isLocal } = this.#client;
    const json = { idle_timeout: IDLE, ...(isLocal && { workspace: this.localFolder(), ends_with_caller: true }) };
    const headers = { "idempotency-key": randomBytes(16).toString("hex") };
    const started = await this.#client.json<Schemas["Started"]>({ method: "POST", path: "/v1/sessions", json, headers, repeatable: "safe" });
    const files = new Files(this.#client, `/v1/sessions/${started.session_id}`);
    if (!isLocal) await files.makeDirectory(FOLDER);
    return files;
  }

  /** Not in the directory for state, which sandboxes are kept out of. */
  private localFolder(): string {
    const given = this.#env["XDG_DATA_HOME"];
    const data = given && isAbsolute(given) ? given : join(this.#env["HOME"] || homedir(), ".local", "share");
    const folder = join(data, "sessile", "codebases");
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return folder;
  }
}

/** Where a sandbox has its files. */
const WORKSPACE = "/workspace";

/** A path as the server takes it, relative to the workspace: `/workspace/a`, `/a` and `a` are the same. */
export function innerPath(path: string): string {
  const inner = path === WORKSPACE || path.startsWith(`${WORKSPACE}/`) ? path.slice(WORKSPACE.length) : path;
  return inner.replace(/^\/+/, "");
}

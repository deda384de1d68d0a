/** The client: requests with retries, and streams that resume. */
import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { setTimeout as sleep } from "node:timers/promises";
import { type Codebase, Codebases, type UploadResult } from "./codebases.js";
import { AbortError, ConnectionError, InvalidRequestError, SessileError, UnavailableError, fromAnswer } from "./errors.js";
import type { FileEntry } from "./files.js";
import { localSocket, startLocal } from "./local.js";
import { decide, isPassing, type Repeatable } from "./retry.js";
import { type Camel, type Schemas, camel, given } from "./shapes.js";
import { SHOWN } from "./shown.js";
import { EventParser, type ServerEvent } from "./sse.js";
import { type Address, type Incoming, type Lane, type TlsOptions, Transport, Unanswered, collect, gaveUp, goneMeanwhile } from "./transport.js";

export interface ClientOptions {
  /** A server's address: `https://host:port`, or `unix:/path`. Default: SESSILE_URL, else the local server. */
  url?: string;
  /** Default: SESSILE_TOKEN. */
  token?: string;
  tls?: TlsOptions;
  /** Milliseconds that a request may be without an answer, besides what it was asked to wait; 0: any time. */
  requestTimeout?: number;
  /** Milliseconds to try again after a connection broke; 0: never. */
  retryFor?: number;
  /** The environment to read settings from; default: this process's. */
  env?: NodeJS.ProcessEnv;
  /** Given a line about each request: what was asked, what came of it, and how long it took. Never a token. */
  debug?: (line: string) => void;
}

/** A request of the API. */
export interface Call {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  query?: Record<string, string | number | boolean | undefined>;
  json?: unknown;
  /** Bytes, or what makes a stream of them; it is made anew if the request is sent again. */
  body?: Uint8Array | (() => Readable);
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** Default: reading is safe, everything else is done once. */
  repeatable?: Repeatable;
  /** Of a call that is safe. */
  lane?: Exclude<Lane, "fresh">;
  /** Milliseconds that the server was asked to wait. */
  waits?: number;
}

/** How a stream is opened, and opened again after the last event that came. */
export type Reopen = (last: ServerEvent | undefined) => Call;

const REQUEST_TIMEOUT_MS = 60_000;
const RETRY_FOR_MS = 30_000;

export class Client {
  readonly #transport: Transport;
  readonly #headers: Record<string, string>;
  private readonly requestTimeout: number;
  private readonly retryFor: number;
  readonly #env: NodeJS.ProcessEnv;
  readonly #debug: ((line: string) => void) | undefined;
  /** Files that are kept at the server, for sandboxes to be made from. */
  readonly codebases: Codebases;
  private hasAnswered = false;
  private starting: Promise<void> | undefined;

  constructor(options: ClientOptions = {}) {
    this.#env = options.env ?? process.env;
    const url = options.url ?? this.#env["SESSILE_URL"];
    // A token that was read from a file has a newline at its end.
    const token = (options.token ?? this.#env["SESSILE_TOKEN"] ?? "").trim();
    if (!/^[\x21-\x7e]*$/.test(token)) throw badToken();
    this.#transport = new Transport(address(url, this.#env), options.tls);
    this.#headers = token ? { authorization: `Bearer ${token}` } : {};
    this.requestTimeout = options.requestTimeout ?? REQUEST_TIMEOUT_MS;
    this.retryFor = options.retryFor ?? RETRY_FOR_MS;
    this.#debug = options.debug;
    this.codebases = new Codebases(this, this.#env);
  }

  /** The server's address, for people. */
  get endpoint(): string {
    return this.#transport.endpoint;
  }

  /** Whether this is the user's own server, which sees the same files. */
  get isLocal(): boolean {
    return this.#transport.address.kind === "local";
  }

  /** What `console.log` shows. */
  [SHOWN](): string {
    return `Client ${this.endpoint}`;
  }

  /** Closes the connections. Sessions go on. */
  close(): void {
    this.#transport.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Sessions, newest first, ended ones included. */
  async *sessions(filter: { status?: Schemas["SessionStatus"]; workspace?: string; signal?: AbortSignal } = {}): AsyncGenerator<SessionInfo> {
    const { signal, ...query } = filter;
    let after: string | undefined;
    do {
      const page = await this.json<Schemas["SessionPage"]>({ method: "GET", path: "/v1/sessions", query: { ...query, after }, signal });
      yield* page.sessions.map(camel);
      after = page.next ?? undefined;
    } while (after);
  }

  /** What all sessions are doing. */
  async top(options: { all?: boolean; signal?: AbortSignal } = {}): Promise<Camel<Schemas["Top"]>> {
    const { signal, ...query } = options;
    return camel(await this.json<Schemas["Top"]>({ method: "GET", path: "/v1/top", query, signal }));
  }

  /** The server's version and health. */
  async health(options: { signal?: AbortSignal } = {}): Promise<Record<string, unknown>> {
    return this.json({ method: "GET", path: "/healthz", signal: options.signal });
  }

  /** A place for files, to make sandboxes from; see `Sandbox.fromCodebase`. */
  async createCodebase(name: string, options: { ownerId?: string; signal?: AbortSignal } = {}): Promise<Codebase> {
    return this.codebases.create(name, options);
  }

  async getCodebase(id: string, options: { signal?: AbortSignal } = {}): Promise<Codebase> {
    return this.codebases.get(id, options);
  }

  async listCodebases(options: { ownerId?: string; signal?: AbortSignal } = {}): Promise<Codebase[]> {
    return this.codebases.list(options);
  }

  async deleteCodebase(id: string, options: { signal?: AbortSignal } = {}): Promise<void> {
    return this.codebases.delete(id, options);
  }

  async uploadFile(codebaseId: string, path: string, content: string | Uint8Array, options: { signal?: AbortSignal } = {}): Promise<UploadResult> {
    return this.codebases.upload(codebaseId, path, content, options);
  }

  async downloadFile(codebaseId: string, path: string, options: { signal?: AbortSignal } = {}): Promise<Uint8Array> {
    return this.codebases.download(codebaseId, path, options);
  }

  /** Files of a codebase; their paths are relative to it. */
  async listFiles(codebaseId: string, path = "", options: { recursive?: boolean; signal?: AbortSignal } = {}): Promise<FileEntry[]> {
    return this.codebases.listFiles(codebaseId, path, options);
  }

  /** One call of the `runtime` tool, as `sessile tool` takes and answers it. */
  async tool(request: Schemas["RuntimeRequest"], options: { signal?: AbortSignal } = {}): Promise<Record<string, unknown>> {
    // Where the caller is, as for `sessile tool`; the local server is nowhere.
    const json = this.isLocal ? { ...request, workspace: resolve(request.workspace ?? ".") } : request;
    const waits = request.timeout_ms === 0 ? 24 * 3_600_000 : (request.timeout_ms ?? 30_000);
    return this.json({ method: "POST", path: "/v1/tools/runtime", json, lane: "wait", waits, signal: options.signal });
  }

  /** Any call of the API; its answer as JSON. */
  async json<T>(call: Call): Promise<T> {
    return (await this.answer<T>(call)).value;
  }

  /** The same with the answer's status. */
  async answer<T>(call: Call): Promise<{ status: number; value: T; headers: Incoming["headers"] }> {
    return this.attempts(call, async (response) => {
      const body = await collect(response, call.signal);
      const status = response.statusCode ?? 0;
      const value = parse(body);
      if (status >= 400) throw new Refused(fromAnswer(status, value, call.path), retryAfter(response));
      return { status, value: value as T, headers: response.headers };
    });
  }

  /** Any request; its answer as it is, whatever the status. */
  async exchange(call: Call): Promise<{ status: number; headers: Incoming["headers"]; bytes: Buffer }> {
    return this.attempts(call, async (response) => {
      const bytes = await collect(response, call.signal);
      return { status: response.statusCode ?? 0, headers: response.headers, bytes };
    });
  }

  /** Any call of the API; its answer's bytes as they come. */
  async bytes(call: Call): Promise<Incoming> {
    return this.attempts(call, async (response) => {
      const status = response.statusCode ?? 0;
      if (status < 400) return response;
      throw new Refused(fromAnswer(status, parse(await collect(response, call.signal)), call.path), retryAfter(response));
    });
  }

  /**
   * The events of a stream, which is opened again where it broke. It ends with
   * the first event that `isLast` says is one. `goingOn` says how to read on
   * later, for a server that went away for good.
   */
  async *events(reopen: Reopen, isLast: (event: ServerEvent) => boolean, signal?: AbortSignal, goingOn = () => "ask for it again when the server is back"): AsyncGenerator<ServerEvent> {
    let last: ServerEvent | undefined;
    let wasOpen = false;
    for (let silent = 0; ; silent++) {
      const call = reopen(last);
      const opened = this.bytes({ repeatable: "safe", ...call, signal, headers: { accept: "text/event-stream", ...call.headers } });
      const response = await opened.catch((error: unknown) => {
        throw wasOpen && error instanceof ConnectionError ? goneMeanwhile(error, goingOn()) : error;
      });
      wasOpen = true;
      const parser = new EventParser();
      const decoder = new StringDecoder("utf8");
      const onAbort = () => response.destroy();
      signal?.addEventListener("abort", onAbort, { once: true });
      try {
        for await (const chunk of response) {
          for (const event of parser.push(decoder.write(chunk as Buffer))) {
            // The server ends the stream, and says why.
            if (event.event === "error") throw fromAnswer(0, { error: JSON.parse(event.data) });
            last = event;
            silent = 0;
            yield event;
            if (isLast(event)) return;
          }
        }
      } catch (error) {
        if (signal?.aborted) throw new AbortError(signal.reason, { reached: true });
        if (error instanceof SessileError && !isPassing(error.code, "safe")) throw error;
        // The connection broke, or the server goes down: on with the next.
      } finally {
        signal?.removeEventListener("abort", onAbort);
        response.destroy();
      }
      if (signal?.aborted) throw new AbortError(signal.reason, { reached: true });
      // A server that ends streams without an event is asked again in peace.
      await sleep(Math.min(20 * 2 ** silent, 1000), undefined, { ref: true });
    }
  }

  private async attempts<T>(call: Call, read: (response: Incoming) => Promise<T>): Promise<T> {
    const { signal } = call;
    const began = performance.now();
    let wasReached = false;
    for (let number = 1; ; number++) {
      if (signal?.aborted) throw new AbortError(signal.reason, { reached: wasReached });
      let error: unknown;
      try {
        const response = await this.#transport.open(this.outgoing(call));
        this.#debug?.(`${call.method} ${call.path}: ${response.statusCode} after ${Math.round(performance.now() - began)} ms`);
        const value = await read(response);
        this.hasAnswered = true;
        return value;
      } catch (thrown) {
        error = thrown;
      }
      if (this.#debug && error instanceof Unanswered) this.#debug(`${call.method} ${call.path}: no answer (${error.reached})`);
      wasReached ||= error instanceof Unanswered && error.reached === "broken";
      if (signal?.aborted) throw new AbortError(signal.reason, { reached: wasReached });
      const isRefusal = error instanceof Refused;
      if (isRefusal) this.hasAnswered = true;
      if (!isRefusal && !(error instanceof Unanswered)) throw error;
      const verdict = decide(
        {
          repeatable: repeatable(call),
          number,
          elapsedMs: performance.now() - began,
          patienceMs: this.retryFor,
          isLocal: this.isLocal,
          hasAnswered: this.hasAnswered,
        },
        isRefusal
          ? { kind: "refused", code: (error as Refused).error.code, retryAfterMs: (error as Refused).retryAfterMs }
          : { kind: "unanswered", reached: (error as Unanswered).reached },
      );
      if (verdict.kind === "give up") {
        if (isRefusal) throw (error as Refused).error;
        const { reached, cause } = error as Unanswered;
        // Whatever became of the last attempt, an earlier one may have been heard.
        throw gaveUp(wasReached && reached === "unsent" ? new Unanswered("broken", cause) : (error as Unanswered), this.endpoint);
      }
      if (verdict.afterMs > 0) await pause(verdict.afterMs, signal, wasReached);
      if (verdict.startLocal) await this.startLocal();
    }
  }

  private outgoing(call: Call): Parameters<Transport["open"]>[0] {
    const headers: Record<string, string> = { ...this.#headers, ...call.headers };
    let body: string | Uint8Array | Readable | undefined = typeof call.body === "function" ? call.body() : call.body;
    if (call.json !== undefined) {
      body = JSON.stringify(call.json);
      headers["content-type"] = "application/json";
      headers["content-length"] = String(Buffer.byteLength(body));
    }
    const deadline = this.requestTimeout > 0 && typeof call.body !== "function" ? this.requestTimeout + (call.waits ?? 0) : 0;
    return { method: call.method, path: call.path + queryText(call.query), headers, body, signal: call.signal, deadline, lane: repeatable(call) === "once" ? "fresh" : (call.lane ?? "control") };
  }

  /** However many calls find that nobody is there, it is started once. */
  private startLocal(): Promise<void> {
    this.starting ??= startLocal(this.#env)
      .then((socket) => {
        this.#transport.address = { kind: "local", socket };
      })
      .finally(() => {
        this.starting = undefined;
      });
    return this.starting;
  }
}

/** A session's metadata. */
export type SessionInfo = Camel<Schemas["SessionInfo"]>;

/** An answer that says no. */
class Refused extends Error {
  constructor(
    readonly error: SessileError,
    readonly retryAfterMs: number | undefined,
  ) {
    super(error.message);
  }
}

/** A new name for an order, under which it is carried out once. */
export function newKey(): string {
  return randomUUID();
}

/** The client of calls that name none: that of the environment, one for the process. */
export function defaultClient(): Client {
  const place = globalThis as { [DEFAULT]?: Client };
  place[DEFAULT] ??= new Client();
  return place[DEFAULT];
}

// One for the process, though this package may be loaded as ESM and as CommonJS.
const DEFAULT = Symbol.for("sessile.defaultClient");

function address(url: string | undefined, env: NodeJS.ProcessEnv): Address {
  if (url === undefined || url === "") return { kind: "local", socket: localSocket(env) };
  const unix = /^unix:(?:\/\/)?(\/.*)$/.exec(url);
  if (unix) return { kind: "unix", socket: unix[1] as string };
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch (cause) {
    throw badUrl(url, cause);
  }
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") throw badUrl(url);
  const kind = parsed.protocol === "https:" ? "https" : "http";
  const port = parsed.port === "" ? (kind === "https" ? 443 : 80) : Number(parsed.port);
  const host = parsed.hostname.replace(/^\[(.*)\]$/, "$1");
  return { kind, host, port, base: parsed.pathname.replace(/\/+$/, "") };
}

function badToken(): SessileError {
  return new InvalidRequestError("the token has characters that no token has", {
    code: "invalid_argument",
    hint: "`sessile token show --raw` prints the owner's",
  });
}

function badUrl(url: string, cause?: unknown): SessileError {
  return new InvalidRequestError(`${JSON.stringify(url)} is no server's address`, {
    code: "invalid_argument",
    hint: "write http://host:port, https://host:port or unix:/path",
    cause,
  });
}

/** Reading is safe; what says nothing else is done once. */
function repeatable(call: Call): Repeatable {
  return call.repeatable ?? (call.method === "GET" ? "safe" : "once");
}

function queryText(query: Call["query"]): string {
  if (!query) return "";
  const pairs = Object.entries(given(query)).map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return pairs.length > 0 ? `?${pairs.join("&")}` : "";
}

function parse(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (cause) {
    throw new UnavailableError("the answer is not JSON", {
      code: "unexpected_answer",
      hint: "check that the address is that of a Sessile server",
      cause,
    });
  }
}

function retryAfter(response: Incoming): number | undefined {
  const seconds = Number(response.headers["retry-after"]);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined;
}

async function pause(ms: number, signal: AbortSignal | undefined, reached: boolean): Promise<void> {
  try {
    await sleep(ms, undefined, signal ? { signal } : {});
  } catch {
    throw new AbortError(signal?.reason, { reached });
  }
}

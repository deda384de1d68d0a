/** Sessions: live interpreters that remember. */
import { resolve } from "node:path";
import { type Call, Client, type SessionInfo, defaultClient, newKey } from "./client.js";
import { waiting } from "./ctrlc.js";
import { AbortError, SessileError, SessionClosedError } from "./errors.js";
import { type RunEvent, type SessionEvent, isLastOfRun, sessionEvent } from "./events.js";
import { type FileEntry, Files, type ReadOptions, type WriteOptions } from "./files.js";
import { Layer, type LayerApplied, type LayerDiscarded, type LayerOptions } from "./layer.js";
import { Port } from "./port.js";
import { type Language, Result, isShell } from "./result.js";
import { execRequest, startRequest } from "./requests.js";
import { Run, type SignalOption, WAIT_MS, goesOn, interruptAborted, typed } from "./run.js";
import { type Restored, type Saved, type SaveSource, restore, save } from "./saving.js";
import { type Camel, type Schemas, type Span, camel, given } from "./shapes.js";
import { SHOWN } from "./shown.js";
import type { ServerEvent } from "./sse.js";
import type { SandboxPolicy } from "./policy.js";

export interface StartOptions extends SignalOption {
  client?: Client;
  /** What `exec` speaks; default: bash. */
  language?: Language;
  /** The interpreter instead, by name or path: `zsh`, `/usr/bin/python3.12`. */
  shell?: string;
  /** The directory that it belongs to. Default: the current one of this process, or the server's if it is remote. */
  workspace?: string;
  /** Where to start, if not in the workspace. */
  cwd?: string;
  env?: Record<string, string>;
  name?: string;
  /** What it may see, touch and use: `true`, a preset's name, or a policy. */
  sandbox?: SandboxPolicy;
  /** Ends after this long without a run; 0: never. */
  idleTimeout?: Span;
  /** For commands that do not say; 0: none. */
  commandTimeout?: Span;
  maxHistory?: number;
  /** Bytes of each stream of a run that are kept. */
  outputLimit?: number;
  /** Take a checkpoint before each run, and keep so many: see {@link Session.undo}. */
  auto?: number | { keep: number; files?: boolean };
  /** Saved in idle time, so that it goes on after a reboot. */
  durable?: boolean;
  /** A session, or a pool of the server, to begin with the state of. */
  from?: string;
  /**
   * On the local server, whether it outlives this program. Default: only one
   * that has a `name` or is `durable`; others end with the program, however
   * that ends. A remote one lasts until it is ended, or idle for too long.
   */
  keep?: boolean;
  /** Under which it is started once, however often it is asked for. Default: a new one. */
  idempotencyKey?: string;
}

/** A start from a pool, or with many files to look at, takes its time. */
const START_MS = 60_000;

export interface ExecOptions extends SignalOption {
  language?: Language;
  /** Interrupts the command after this long; 0: never. Default: that of the session, 30 s. */
  timeout?: Span;
  /** Interrupts it when it has written nothing for this long. */
  noOutputTimeout?: Span;
  /** What it reads; default: nothing. */
  stdin?: string;
  /** For this run alone. */
  env?: Record<string, string>;
  /** Bytes of each stream that the answer carries. */
  maxOutput?: number;
  /** Under which this is carried out once, however often it is asked for. Default: a new one. */
  idempotencyKey?: string;
}

export interface BackgroundOptions extends ExecOptions {
  /** Keeps stdin open for {@link Run.input}. */
  interactive?: boolean;
  /** A terminal in the place of the streams: true, or its size. */
  terminal?: boolean | { cols: number; rows: number };
}

/** What a session remembers: of the default language's interpreter, and in `kernels` of each. */
export type SessionState = Camel<Schemas["State"]> & KernelState & { kernels?: Record<string, KernelState> };

/** What an interpreter remembers. Each language tells what it has. */
export interface KernelState {
  /** `null` of one that has not started. */
  workingDir?: string | null;
  envVars?: Record<string, string> | null;
  variables?: Record<string, unknown>;
  functions?: string[];
  imports?: string[];
  [other: string]: unknown;
}
export type HistoryEntry = Camel<Schemas["HistoryRow"]>;
export type Job = Camel<Schemas["JobRow"]>;
export type Checkpoint = Camel<Schemas["CheckpointRow"]>;
export type Rewound = Camel<Schemas["Rewound"]>;

export class Session implements AsyncDisposable {
  /** The session's files. */
  readonly files: Files;
  /** What a sandboxed session has changed. */
  readonly layer: Layer;
  private readonly path: string;
  private closed = false;

  private constructor(
    readonly client: Client,
    readonly id: string,
    /** Its working directory at the start, if it was started or found here. */
    readonly workDir: string,
    private readonly defaults: RunDefaults = {},
  ) {
    this.path = `/v1/sessions/${id}`;
    const assertOpen = () => this.assertOpen();
    this.files = new Files(client, this.path, assertOpen);
    this.layer = new Layer(client, this.path, assertOpen);
  }

  /** Starts a session. `await using` ends it where its block ends. */
  static async start(options: StartOptions = {}): Promise<Session> {
    const client = options.client ?? defaultClient();
    const json = startRequest(options, client.isLocal);
    const headers = { "idempotency-key": options.idempotencyKey ?? newKey() };
    const started = await client.json<Schemas["Started"]>({ method: "POST", path: "/v1/sessions", json, headers, repeatable: "safe", waits: START_MS, signal: options.signal });
    return new Session(client, started.session_id, started.work_dir);
  }

  /** A session that exists, by its id, the beginning of that, or its name. */
  static async attach(id: string, options: SignalOption & { client?: Client } = {}): Promise<Session> {
    const client = options.client ?? defaultClient();
    const path = `/v1/sessions/${encodeURIComponent(id)}`;
    const info = await client.json<Schemas["SessionInfo"]>({ method: "GET", path, signal: options.signal });
    if (info.status === "terminated") throw ended(info.session_id);
    return new Session(client, info.session_id, info.work_dir);
  }

  /** A new session from a saved one: a file's path, or its bytes. */
  static async restore(
    source: SaveSource,
    options: SignalOption & { client?: Client; cwd?: string; name?: string; trust?: boolean; durable?: boolean; keep?: boolean } = {},
  ): Promise<Session & { readonly restored: Restored }> {
    const { client = defaultClient(), cwd, ...others } = options;
    const place = cwd !== undefined && client.isLocal ? resolve(cwd) : cwd;
    const restored = await restore(client, source, { ...others, ...given({ cwd: place }) });
    return Object.assign(new Session(client, restored.sessionId, restored.workDir), { restored });
  }

  /** The same session with other defaults for runs that are begun with this object. */
  withDefaults(defaults: RunDefaults): Session {
    return new Session(this.client, this.id, this.workDir, { ...this.defaults, ...defaults });
  }

  /** Runs a command, and waits for its end. A command that fails is no error; see {@link Result.check}. */
  async exec(command: string, options: ExecOptions = {}): Promise<Result> {
    return this.order("exec", command, options);
  }

  /** Runs Python code. */
  async python(code: string, options: Omit<ExecOptions, "language"> = {}): Promise<Result> {
    return this.order("exec", code, { ...options, language: "python" });
  }

  /** Runs JavaScript in the session's Node. */
  async node(code: string, options: Omit<ExecOptions, "language"> = {}): Promise<Result> {
    return this.order("exec", code, { ...options, language: "node" });
  }

  /**
   * Runs code for the value of its last expression: `result`, and `data` with
   * richer forms. Python unless `language` says otherwise; in a shell, the
   * result is what was printed.
   */
  async eval(code: string, options: ExecOptions = {}): Promise<Result> {
    const outcome = await this.order("eval", code, options);
    return isShell(outcome.language) ? outcome.withPrinted() : outcome;
  }

  /**
   * Runs a command, and tells what it does as it happens, across broken
   * connections. Leaving the loop leaves the run going; `signal` interrupts it.
   */
  async *stream(command: string, options: BackgroundOptions = {}): AsyncGenerator<RunEvent> {
    this.assertOpen();
    const { signal, idempotencyKey = newKey() } = options;
    const json = this.request(command, options);
    let run: number | undefined;
    const interrupt = () => this.interruptOrdered("exec", json, idempotencyKey, run);
    const reopen = (last: ServerEvent | undefined): Call =>
      last && run !== undefined
        ? { method: "GET", path: `${this.path}/runs/${run}/events`, lane: "wait", headers: { "last-event-id": last.id } }
        : { method: "POST", path: `${this.path}/exec`, json, lane: "wait", headers: { "idempotency-key": idempotencyKey } };
    waiting.add(interrupt);
    try {
      for await (const event of typed(this.client.events(reopen, isLastOfRun, signal, () => goesOn(this.id, run)))) {
        run = event.run;
        yield event;
      }
    } catch (error) {
      if (!(error instanceof AbortError) || !error.reached) throw error;
      throw await this.abort("exec", json, idempotencyKey, signal?.reason, run);
    } finally {
      await waiting.remove(interrupt);
    }
  }

  /** Begins a command, and does not wait for it. It has no time limit unless `timeout` says one. */
  async background(command: string, options: BackgroundOptions = {}): Promise<Run> {
    this.assertOpen();
    const key = options.idempotencyKey ?? newKey();
    const json = { ...this.request(command, { ...options, timeout: options.timeout ?? 0 }), wait: 0 };
    const call = this.keyed("exec", json, key, 0, options.signal);
    const { run } = await this.client.json<{ run: number }>(call);
    return this.run(run);
  }

  /** A run by its number, whoever began it. */
  run(number: number): Run {
    return new Run(this.client, this.id, number);
  }

  /** The runs that are queued or going, and the newest finished ones. */
  async runs(options: SignalOption & { limit?: number } = {}): Promise<Camel<Schemas["RunRow"]>[]> {
    return this.get<Schemas["RunRow"][]>("/runs", options);
  }

  /** What all runs of this session do, whoever began them, from now on; `tail` begins with finished ones. */
  async *events(options: SignalOption & { output?: boolean; tail?: number; after?: string } = {}): AsyncGenerator<SessionEvent> {
    const { signal, output, tail, after } = options;
    const reopen = (last: ServerEvent | undefined): Call => {
      const id = last?.id || after;
      const query = id ? { output } : { output, tail };
      return { method: "GET", path: `${this.path}/events`, query, lane: "wait", headers: id ? { "last-event-id": id } : {} };
    };
    for await (const event of this.client.events(reopen, ({ event }) => event === "ended", signal)) yield sessionEvent(event);
  }

  /** The session's metadata. */
  async info(options: SignalOption = {}): Promise<SessionInfo> {
    return this.get<Schemas["SessionInfo"]>("", options);
  }

  /** What its interpreters remember. */
  async state(options: SignalOption = {}): Promise<SessionState> {
    return this.get<Schemas["State"]>("/state", options) as Promise<SessionState>;
  }

  /** What was run, oldest first. */
  async history(options: SignalOption & { limit?: number } = {}): Promise<HistoryEntry[]> {
    return this.get<Schemas["HistoryRow"][]>("/history", options);
  }

  /** What runs have left in the background. */
  async jobs(options: SignalOption = {}): Promise<Job[]> {
    return this.get<Schemas["JobRow"][]>("/jobs", options);
  }

  /** Signals a job with all that descends from it; how many processes got it. */
  async signalJob(pid: number, signal: string | number = "TERM", options: SignalOption = {}): Promise<number> {
    const json = { signal: String(signal).replace(/^SIG/, "") };
    return (await this.post<Schemas["SignalledJob"]>(`/jobs/${pid}/signal`, json, options)).processes;
  }

  /** Interrupts what runs, and keeps the state. Whether something ran. */
  async interrupt(options: SignalOption = {}): Promise<boolean> {
    return (await this.post<Schemas["Interrupted"]>("/interrupt", {}, options)).interrupted;
  }

  /** Fresh interpreters, an empty history; everything that was running is ended. */
  async reset(options: SignalOption = {}): Promise<void> {
    await this.post("/reset", undefined, options);
  }

  async rename(name: string | null, options: SignalOption = {}): Promise<void> {
    await this.client.json({ method: "PATCH", path: this.path, json: { name }, repeatable: "safe", signal: options.signal });
  }

  /** A copy of this session that goes its own way; with `count`, so many. */
  async fork(options?: SignalOption & ForkOptions): Promise<Session>;
  async fork(options: SignalOption & ForkOptions & { count: number }): Promise<Session[]>;
  async fork(options: SignalOption & ForkOptions & { count?: number } = {}): Promise<Session | Session[]> {
    const { signal, count, ...others } = options;
    const forked = await this.post<Schemas["Forked"]>("/fork", { ...given(others), count: count ?? 1 }, { signal, ...patient(others.wait) });
    const sessions = forked.sessions.map((row) => new Session(this.client, row.session_id, row.work_dir));
    return count === undefined ? sessions[0]! : sessions;
  }

  /** Takes a checkpoint, to come back to with {@link rewind}. */
  async checkpoint(name?: string, options: SignalOption & { files?: boolean; wait?: boolean } = {}): Promise<Checkpoint> {
    const { signal, files, wait } = options;
    const json = given({ name, files, wait });
    return camel(await this.post<Schemas["CheckpointRow"]>("/checkpoints", json, { signal, ...patient(wait) }));
  }

  async checkpoints(options: SignalOption = {}): Promise<Checkpoint[]> {
    return this.get<Schemas["CheckpointRow"][]>("/checkpoints", options);
  }

  /** Drops a checkpoint, or all of them; the names of those that are gone. */
  async dropCheckpoint(name?: string, options: SignalOption = {}): Promise<string[]> {
    const path = `${this.path}/checkpoints${name === undefined ? "" : `/${encodeURIComponent(name)}`}`;
    return (await this.client.json<Schemas["Dropped"]>({ method: "DELETE", path, signal: options.signal })).dropped;
  }

  /** Goes back to a checkpoint (the newest if none is named), or by so many runs. */
  async rewind(to?: string | number, options: SignalOption & { keepFiles?: boolean; wait?: boolean } = {}): Promise<Rewound> {
    const { signal, keepFiles, wait } = options;
    const target = typeof to === "number" ? { runs: to } : given({ checkpoint: to });
    const json = { ...target, ...given({ keep_files: keepFiles, wait }) };
    return camel(await this.post<Schemas["Rewound"]>("/rewind", json, { signal, ...patient(wait) }));
  }

  /** Takes back the last run, in a session that was started with `auto`. */
  async undo(options: SignalOption & { keepFiles?: boolean; wait?: boolean } = {}): Promise<Rewound> {
    const { signal, keepFiles, wait } = options;
    return camel(await this.post<Schemas["Rewound"]>("/undo", given({ keep_files: keepFiles, wait }), { signal, ...patient(wait) }));
  }

  /** Saves the session to a file of this machine, for {@link Session.restore}. */
  async save(path: string, options: SignalOption & { files?: boolean; wait?: boolean } = {}): Promise<Saved> {
    return save(this.client, this.path, path, options);
  }

  /** A file as text; {@link files} has the rest of what can be done with them. */
  async readFile(path: string, options: ReadOptions = {}): Promise<string> {
    return this.files.readText(path, options);
  }

  async readFileBytes(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    return this.files.read(path, options);
  }

  async writeFile(path: string, content: string | Uint8Array, options: WriteOptions = {}): Promise<FileEntry> {
    return this.files.write(path, content, options);
  }

  async listFiles(path = "", options: SignalOption & { depth?: number; recursive?: boolean } = {}): Promise<FileEntry[]> {
    return this.files.list(path, options);
  }

  /** What a sandboxed session has changed in its workspace, as a unified diff. */
  async diff(options: LayerOptions & { stat?: boolean } = {}): Promise<string> {
    return this.layer.diff(options);
  }

  /** Brings these changes to the real directory: all, or those of some paths. */
  async apply(options: LayerOptions & { force?: boolean } = {}): Promise<LayerApplied> {
    return this.layer.apply(options);
  }

  /** Drops them. */
  async discard(options: LayerOptions = {}): Promise<LayerDiscarded> {
    return this.layer.discard(options);
  }

  /** Where its processes listen. */
  async ports(options: SignalOption = {}): Promise<Camel<Schemas["JobPort"]>[]> {
    return this.get<Schemas["JobPort"][]>("/ports", options);
  }

  /** A port that something in this session listens on. */
  port(number: number): Port {
    this.assertOpen();
    return new Port(this.client, `${this.path}/ports/${number}`, number);
  }

  /** Whether this object has ended it. */
  get isEnded(): boolean {
    return this.closed;
  }

  /** What `console.log` shows. */
  [SHOWN](): string {
    return `Session ${this.id}${this.closed ? " (ended)" : ""}`;
  }

  /** Ends the session and everything that it started. */
  async end(options: SignalOption = {}): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    try {
      await this.client.json({ method: "DELETE", path: this.path, repeatable: "safe", signal: options.signal });
    } catch (error) {
      // It had ended, or an earlier attempt whose answer was lost has ended it.
      const isGone = error instanceof SessileError && (error.code === "session_ended" || error.code === "session_not_found");
      if (!isGone) {
        this.closed = false;
        throw error;
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  private async order(action: "exec" | "eval", command: string, options: ExecOptions): Promise<Result> {
    this.assertOpen();
    const { signal } = options;
    const key = options.idempotencyKey ?? newKey();
    // A value is Python's unless its call says otherwise.
    const json = this.request(command, action === "eval" ? { language: "python", ...options } : options);
    try {
      return await waiting.for(
        () => this.interruptOrdered(action, json, key),
        () => this.outcome(this.keyed(action, { ...json, wait: WAIT_MS / 1000 }, key, WAIT_MS, signal), options),
      );
    } catch (error) {
      if (!(error instanceof AbortError) || !error.reached || error.run !== undefined) throw error;
      throw await this.abort(action, json, key, signal?.reason);
    }
  }

  /** What comes of an order, however long it takes. */
  private async outcome(call: Call, { signal, maxOutput }: ExecOptions): Promise<Result> {
    const { status, value } = await this.client.answer<Schemas["RunResult"] | Schemas["Output"]>(call);
    if (status !== 202) return new Result(value as Schemas["RunResult"]);
    try {
      return await this.run(value.run).wait(given({ signal, maxOutput }));
    } catch (error) {
      if (!(error instanceof AbortError)) throw error;
      throw await interruptAborted(this.run(value.run), signal?.reason);
    }
  }

  private async interruptOrdered(action: "exec" | "eval", json: object, key: string, run?: number): Promise<void> {
    await this.abort(action, json, key, undefined, run);
  }

  /**
   * Interrupts the run that was asked for under this key. Its number is asked
   * for by asking for the run again, which tells it and begins nothing.
   */
  private async abort(action: "exec" | "eval", json: object, key: string, reason: unknown, run?: number): Promise<AbortError> {
    try {
      const number = run ?? (await this.client.json<{ run: number }>(this.keyed(action, { ...json, wait: 0 }, key, 0))).run;
      return await interruptAborted(this.run(number), reason);
    } catch (error) {
      if (!(error instanceof SessileError)) throw error;
      return new AbortError(reason, { run, reached: true });
    }
  }

  private request(command: string, options: BackgroundOptions): object {
    const { language, env } = this.defaults;
    if (language === undefined && env === undefined) return execRequest(command, options);
    return execRequest(command, { ...given({ language }), ...options, env: { ...env, ...options.env } });
  }

  private keyed(action: string, json: object, key: string, waits: number, signal?: AbortSignal): Call {
    return {
      method: "POST",
      path: `${this.path}/${action}`,
      json,
      headers: { "idempotency-key": key },
      repeatable: "safe",
      lane: waits > 0 ? "wait" : "control",
      waits,
      signal,
    };
  }

  private async get<T>(path: string, options: SignalOption & { limit?: number }): Promise<Camel<T>> {
    const { signal, limit } = options;
    return camel(await this.client.json<T>({ method: "GET", path: this.path + path, query: { limit }, signal }));
  }

  private async post<T>(path: string, json: unknown, options: SignalOption & Pick<Call, "lane" | "waits">): Promise<T> {
    this.assertOpen();
    return this.client.json<T>({ method: "POST", path: this.path + path, json, ...options });
  }

  private assertOpen(): void {
    if (this.closed) throw ended(this.id, "session_closed");
  }
}

/** What runs have that do not say otherwise. */
export interface RunDefaults {
  language?: Language;
  env?: Record<string, string>;
}

export interface ForkOptions {
  /** The same workspace, or a copy of it as it is now. */
  files?: "share" | "copy";
  name?: string;
  /** Wait for active runs instead of refusing. */
  wait?: boolean;
}

function ended(id: string, code = "session_ended"): SessionClosedError {
  return new SessionClosedError(`the session ${id} has ended`, { code, hint: "start a new one with Session.start()" });
}

/** Calls that wait for a run take as long as that does. */
function patient(wait: boolean | undefined): Pick<Call, "lane" | "waits"> {
  return wait ? { lane: "wait", waits: 24 * 3_600_000 } : {};
}

/**
 * A directory that untrusted code works in, without touching it.
 *
 * A sandbox is a session that is confined, and in which nothing is run. What is
 * run in it runs in forks of that session, which share its files and its walls.
 */
import { statSync } from "node:fs";
import { basename, resolve } from "node:path";
import { type Client, defaultClient } from "./client.js";
import { innerPath } from "./codebases.js";
import { CommandTimeoutError, InvalidRequestError, SandboxNotFoundError, SandboxNotRunningError, SessionClosedError, SessionNotFoundError } from "./errors.js";
import type { RunEvent } from "./events.js";
import type { Files } from "./files.js";
import type { LayerApplied, LayerDiscarded, LayerOptions } from "./layer.js";
import { type PermissionRule, type Policy, type Preset, type ResourceLimits, hidden, isHidden } from "./policy.js";
import type { Port } from "./port.js";
import type { Language, Result } from "./result.js";
import type { SignalOption } from "./run.js";
import { type BackgroundOptions, type ExecOptions, Session, type StartOptions } from "./session.js";
import { given } from "./shapes.js";
import { SHOWN } from "./shown.js";

export interface SandboxOptions extends SignalOption {
  client?: Client;
  /** Default: `development`. */
  preset?: Preset | (string & {});
  /** Besides those of the preset. */
  permissions?: readonly PermissionRule[];
  resources?: ResourceLimits;
  network?: Policy["network"];
  /** What does not exist inside: `node_modules`, `*.log`, `/build`. */
  ignorePatterns?: readonly string[];
  /** Variables of all its sessions. */
  env?: Readonly<Record<string, string>>;
  /** Words of your own, which stay with it: {@link Sandbox.connect} finds them again. */
  labels?: Readonly<Record<string, string>>;
  /** Ends after this long without a run; default: 8 h. */
  idleTimeout?: number | string;
  /** Whether it lasts when this program has ended, for another to connect to. */
  keep?: boolean;
  /** Default: true. If not, {@link Sandbox.start} starts it. */
  autoStart?: boolean;
}

/** Of {@link Sandbox.run} and {@link Sandbox.exec}. */
export interface FreshOptions extends ExecOptions {
  /** Where it runs, if not in `/workspace`. */
  workdir?: string;
  /** Throws a `CommandError` if the command fails. */
  raiseOnError?: boolean;
}

export interface SandboxSessionOptions extends SignalOption {
  language?: Language;
  /** What `exec` speaks, by its program: `/bin/sh` (which is bash, so that `source` works), `zsh`, `python3`. */
  shell?: string;
  env?: Readonly<Record<string, string>>;
  name?: string;
}

/** What is known of a sandbox here. */
type Stage = "pending" | "running" | "stopped" | "destroyed";

export type SandboxStatus = "pending" | "running" | "stopped";

/** A working day, and not for ever, because its program may be one that cannot be seen to end. */
const IDLE = "8h";

const RUN_MS = 60_000;

/** The variable of a sandbox's session that keeps what belongs to the sandbox, in all SDKs. */
const NOTE = "SESSILE_SANDBOX";

const LANGUAGES: Record<string, Language> = { sh: "bash", bash: "bash", dash: "sh", zsh: "zsh", python3: "python", node: "node" };

/** What a sandbox is made of, when it is started. */
interface Plan {
  options: SandboxOptions;
  /** A directory of this machine that a server elsewhere is sent. */
  upload?: string;
  workspace?: string;
}

/**
 * A sandbox over a directory, which is `/workspace` inside. What its sessions
 * write goes to a layer that they share: {@link diff} shows it, {@link apply}
 * brings it to the directory, and without that the directory stays as it is.
 */
export class Sandbox implements AsyncDisposable {
  private host: Session | undefined;
  private stage: Stage = "pending";
  private readonly sessions = new Set<Session>();
  private ownsCodebase = false;

  private constructor(
    readonly client: Client,
    readonly labels: Readonly<Record<string, string>>,
    /** The codebase that it was made from, if it was. */
    public codebaseId: string | undefined,
    private readonly plan: Plan,
  ) {}

  /** A sandbox over a directory of this machine. With the local server nothing is copied; another one is sent the files. */
  static async fromLocal(path: string, options: SandboxOptions = {}): Promise<Sandbox> {
    const { client = defaultClient(), labels = {} } = options;
    const directory = resolve(path);
    if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory()) {
      throw new InvalidRequestError(`${path} is not a directory`, { code: "invalid_argument", hint: "name a directory of this machine" });
    }
    const plan = client.isLocal ? { options, workspace: directory } : { options, upload: directory };
    return new Sandbox(client, labels, undefined, plan).begin();
  }

  /** A sandbox over files that the server keeps; see {@link Client.createCodebase}. Each has a layer of its own. */
  static async fromCodebase(codebaseId: string, options: Omit<SandboxOptions, "ignorePatterns"> = {}): Promise<Sandbox> {
    const { client = defaultClient(), labels = {} } = options;
    return new Sandbox(client, labels, codebaseId, { options }).begin();
  }

  /** One that exists, by its {@link id}. */
  static async connect(id: string, options: SignalOption & { client?: Client } = {}): Promise<Sandbox> {
    const { client = defaultClient(), signal } = options;
    try {
      const host = await Session.attach(id, { client, ...given({ signal }) });
      const { labels, codebaseId } = readNote((await host.info(given({ signal }))).env ?? {});
      const sandbox = new Sandbox(client, labels, codebaseId, { options: {} });
      sandbox.host = host;
      sandbox.stage = "running";
      return sandbox;
    } catch (error) {
      throw isGone(error) ? new SandboxNotFoundError(id) : error;
    }
  }

  /** Empty before it was started. */
  get id(): string {
    return this.host?.id ?? "";
  }

  /** What `console.log` shows. */
  [SHOWN](): string {
    return `Sandbox ${this.id || "without an id yet"} (${this.stage})`;
  }

  /** Its files, as the policy lets them be seen. */
  get files(): Files {
    return this.live().files;
  }

  private async begin(): Promise<this> {
    return this.plan.options.autoStart === false ? this : this.start(given({ signal: this.plan.options.signal }));
  }

  /** Starts it, or lets it go on after {@link stop}. */
  async start(options: SignalOption = {}): Promise<this> {
    if (this.stage === "destroyed") throw new SandboxNotRunningError(this.id, this.stage);
    this.host ??= await this.made(options);
    this.stage = "running";
    return this;
  }

  /** Ends what runs in it. Its files stay as they are, for {@link start}. */
  async stop(options: SignalOption = {}): Promise<this> {
    await this.endSessions(options);
    await this.host?.reset(options);
    if (this.stage === "running") this.stage = "stopped";
    return this;
  }

  /** Looks what has become of it. */
  async refresh(options: SignalOption = {}): Promise<this> {
    if (this.host && this.stage === "running" && !(await this.isThere(this.host, options))) this.stage = "stopped";
    return this;
  }

  /** Whether it is running, as the server knows it. */
  async status(options: SignalOption = {}): Promise<SandboxStatus> {
    await this.refresh(options);
    return this.stage === "destroyed" ? "stopped" : this.stage;
  }

  /**
   * Ends it with its sessions, whoever made them. Changes that were not applied are gone. A
   * codebase goes, too, if it was made for this sandbox, or as `deleteCodebase` says.
   */
  async destroy(options: SignalOption & { deleteCodebase?: boolean } = {}): Promise<void> {
    const { deleteCodebase = this.ownsCodebase, ...others } = options;
    if (this.stage === "destroyed") return;
    await this.endSessions(others);
    await this.host?.end(others);
    this.stage = "destroyed";
    if (deleteCodebase && this.codebaseId !== undefined) await this.client.codebases.delete(this.codebaseId, others);
  }

  /** A session in it: a shell of its own over the same files. */
  async session(options: SandboxSessionOptions = {}): Promise<Session> {
    const { shell, env, name, signal } = options;
    const language = options.language ?? (shell === undefined ? undefined : languageOf(shell));
    const forked = await this.live().fork({ files: "share", wait: true, ...given({ name, signal }) });
    const session = forked.withDefaults(given({ language, env }));
    for (const other of this.sessions) if (other.isEnded) this.sessions.delete(other);
    this.sessions.add(session);
    return session;
  }

  /** Runs a command in a fresh shell. One that takes longer than `timeout`, a minute by default, is a `CommandTimeoutError`. */
  async run(command: string, options: FreshOptions = {}): Promise<Result> {
    return this.exec(command, { timeout: RUN_MS, ...options });
  }

  /** The same; without a `timeout` it takes as long as it needs. */
  async exec(command: string, options: FreshOptions = {}): Promise<Result> {
    const { workdir, raiseOnError, ...others } = options;
    await using session = await this.session(given({ signal: options.signal }));
    // Waited for here: the session ends when this returns.
    const result = await session.exec(inDirectory(command, workdir), { timeout: 0, ...others });
    if (result.timedOut) throw new CommandTimeoutError(result, `the command was interrupted after ${result.duration} ms`);
    return raiseOnError ? result.check() : result;
  }

  /** The same, as it happens. */
  async *stream(command: string, options: BackgroundOptions & { workdir?: string } = {}): AsyncGenerator<RunEvent> {
    await using session = await this.session(given({ signal: options.signal }));
    const { workdir, ...others } = options;
    yield* session.stream(inDirectory(command, workdir), others);
  }

  /** A file as text; `/workspace/a`, `/a` and `a` are the same. */
  async readFile(path: string, options: SignalOption = {}): Promise<string> {
    return this.live().readFile(innerPath(path), options);
  }

  async readFileBytes(path: string, options: SignalOption = {}): Promise<Uint8Array> {
    return this.live().readFileBytes(innerPath(path), options);
  }

  async writeFile(path: string, content: string | Uint8Array, options: SignalOption = {}): Promise<void> {
    await this.live().writeFile(innerPath(path), content, options);
  }

  /** Paths, relative to `/workspace`. */
  async listFiles(path = "", options: SignalOption & { recursive?: boolean } = {}): Promise<string[]> {
    return (await this.live().listFiles(innerPath(path), options)).map((file) => file.path);
  }

  /** What was changed, as a unified diff. */
  async diff(options: LayerOptions & { stat?: boolean } = {}): Promise<string> {
    return this.live().diff(options);
  }

  /** Brings the changes to the directory: all, or those of some paths. */
  async apply(options: LayerOptions & { force?: boolean } = {}): Promise<LayerApplied> {
    return this.live().apply(options);
  }

  /** Drops the changes: all, or those of some paths. */
  async discard(options: LayerOptions = {}): Promise<LayerDiscarded> {
    return this.live().discard(options);
  }

  port(number: number): Port {
    return this.live().port(number);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy();
  }

  /** The session that it is. */
  private live(): Session {
    if (this.host && this.stage === "running") return this.host;
    throw new SandboxNotRunningError(this.id, this.stage === "running" ? "pending" : this.stage);
  }

  private async made({ signal }: SignalOption): Promise<Session> {
    const { options, upload } = this.plan;
    if (upload !== undefined) await this.send(upload, signal);
    const workspace = this.codebaseId === undefined ? this.plan.workspace : await this.client.codebases.directory(this.codebaseId, { signal });
    const { idleTimeout = IDLE, keep = false } = options;
    const env = { ...options.env, [NOTE]: note(this.labels, this.codebaseId) };
    const start: StartOptions = { client: this.client, sandbox: policyOf(options, upload !== undefined), env, idleTimeout, keep };
    return Session.start({ ...start, ...given({ workspace, signal }) });
  }

  /** Brings the files to a server that is not on this machine. */
  private async send(directory: string, signal: AbortSignal | undefined): Promise<void> {
    const { ignorePatterns = [] } = this.plan.options;
    const made = await this.client.codebases.create(basename(directory), { signal });
    [this.codebaseId, this.ownsCodebase] = [made.id, true];
    const ignore = (path: string) => ignorePatterns.some((pattern) => isHidden(path, pattern));
    await this.client.codebases.uploadTree(made.id, directory, { ignore, signal });
  }

  private async isThere(host: Session, options: SignalOption): Promise<boolean> {
    try {
      return (await host.info(options)).status === "active";
    } catch (error) {
      if (isGone(error)) return false;
      throw error;
    }
  }

  /** Those of this object, and those that others have made in the sandbox. */
  private async endSessions(options: SignalOption): Promise<void> {
    const own = [...this.sessions];
    this.sessions.clear();
    await Promise.all(own.map((session) => session.end(options)));
    if (this.host) await Promise.all((await this.others(this.host, options)).map((session) => session.end(options)));
  }

  /** Forks of its session. What was forked from these may have files of its own, and is left alone. */
  private async others(host: Session, options: SignalOption): Promise<Session[]> {
    const ids: string[] = [];
    for await (const { sessionId, forkedFrom } of this.client.sessions({ status: "active", ...given({ signal: options.signal }) })) {
      if (forkedFrom?.sessionId === host.id) ids.push(sessionId);
    }
    const found = await Promise.all(ids.map((id) => Session.attach(id, { client: this.client, ...options }).catch(unlessGone)));
    return found.filter((session) => session !== undefined);
  }
}

/** One that has ended meanwhile need not be ended. */
function unlessGone(error: unknown): undefined {
  if (!isGone(error)) throw error;
}

function inDirectory(command: string, workdir: string | undefined): string {
  return workdir === undefined ? command : `cd -- '${workdir.replaceAll("'", `'\\''`)}' || exit; ${command}`;
}

function languageOf(shell: string): Language {
  const language = LANGUAGES[basename(shell)];
  if (language) return language;
  const hint = `take one of ${Object.keys(LANGUAGES).join(", ")}`;
  throw new InvalidRequestError(`there is no shell ${JSON.stringify(shell)} in a sandbox`, { code: "invalid_argument", hint });
}

function policyOf(options: SandboxOptions, isUploaded: boolean): Policy {
  const { preset = "development", permissions = [], resources, network, ignorePatterns = [] } = options;
  // What was not sent need not be hidden.
  const rules = isUploaded ? permissions : [...permissions, ...ignorePatterns.flatMap(hidden)];
  return { preset, ...given({ network, limits: resources }), ...(rules.length > 0 && { permissions: rules }) };
}

function note(labels: Readonly<Record<string, string>>, codebaseId: string | undefined): string {
  return JSON.stringify({ labels, codebase_id: codebaseId ?? null });
}

function readNote(env: Record<string, string>): { labels: Record<string, string>; codebaseId: string | undefined } {
  try {
    const found = JSON.parse(env[NOTE] ?? "{}") as { labels?: Readonly<Record<string, string>>; codebase_id?: string | null };
    return { labels: found.labels ?? {}, codebaseId: found.codebase_id ?? undefined };
  } catch {
    return { labels: {}, codebaseId: undefined };
  }
}

function isGone(error: unknown): boolean {
  return error instanceof SessionClosedError || error instanceof SessionNotFoundError;
}

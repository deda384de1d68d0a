/** One workspace's session, as OpenClaw's agents know it. */
import { EventEmitter } from "node:events";
import { AbortError, SessileError, SessionClosedError, SessionNotFoundError } from "../errors.js";
import type { Result } from "../result.js";
import { DEFAULT_HISTORY, DEFAULT_TIMEOUT_MS, Live, directoryOf, startOptions, terminated } from "./live.js";
import { RUNTIMES, type RuntimeCommand, type RuntimeHistoryEntry, type RuntimeOutput, type RuntimeState, type RuntimeType, type SessionConfig } from "./types.js";

const COMMAND_TIMEOUT_MS = 30_000;

/** What of a run's output the history keeps: it is in memory, and there may be many. */
const KEPT_CHARACTERS = 64 * 1024;

/**
 * Live bash, Python and Node of one workspace. It is there at once; the
 * interpreters start with the first command. Emits `"terminated"` when it has
 * ended, by {@link terminate} or because nobody used it for `timeoutMs`.
 */
export class RuntimeSession extends EventEmitter {
  readonly workspaceId: string;
  private readonly live: Live;
  private readonly workspaceDir: string | undefined;
  private readonly timeoutMs: number;
  private readonly maxHistorySize: number;
  private entries: RuntimeHistoryEntry[] = [];
  private lastActivityTime = Date.now();
  private going = 0;
  private isAlive = true;
  private timer: NodeJS.Timeout;

  constructor(config: SessionConfig) {
    super();
    this.workspaceId = config.workspaceId;
    this.workspaceDir = directoryOf(config);
    this.timeoutMs = config.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.maxHistorySize = config.maxHistorySize ?? DEFAULT_HISTORY;
    this.live = new Live(startOptions(config));
    this.timer = this.watch(this.timeoutMs);
  }

  /** Runs a command; what goes wrong is in `error`. Throws only if the session has ended, or `signal` fires. */
  async exec(command: RuntimeCommand): Promise<RuntimeOutput> {
    const language = command.language ?? "bash";
    if (!RUNTIMES.includes(language)) {
      return refusal(`Unsupported runtime type: ${String(language)}. Must be one of: ${RUNTIMES.join(", ")}`);
    }
    return this.perform("exec", { ...command, language });
  }

  /** Runs code for the value of its last expression: `result`. */
  async eval(code: string, language: RuntimeType = "python", options: { timeout?: number; signal?: AbortSignal; maxOutput?: number } = {}): Promise<RuntimeOutput> {
    if (!RUNTIMES.includes(language)) return refusal(`eval() only supports ${RUNTIMES.join(", ")}; got ${String(language)}`);
    return this.perform("eval", { ...options, command: code, language });
  }

  /** What the interpreters remember now. */
  async state(): Promise<RuntimeState> {
    const session = await this.alive(() => this.live.session());
    const { kernels } = (await this.alive(() => session.state())) as unknown as { kernels?: Record<string, KernelState> };
    const [bash, python, node] = RUNTIMES.map((name) => kernels?.[name]);
    const all = [bash, python, node].filter((kernel) => kernel !== undefined);
    return {
      env_vars: { ...node?.envVars, ...python?.envVars, ...bash?.envVars },
      functions: all.flatMap((kernel) => names(kernel.functions)),
      imports: all.flatMap((kernel) => names(kernel.imports)),
      working_dir: all.find((kernel) => kernel.workingDir)?.workingDir ?? this.workspaceDir ?? session.workDir,
      history: this.entries.slice(-20),
    };
  }

  /** Fresh interpreters and an empty history. */
  async reset(): Promise<void> {
    await this.alive(() => this.live.reset());
    this.entries = [];
    this.touch();
  }

  /** The newest entries, oldest first. */
  history(limit = 50): RuntimeHistoryEntry[] {
    return limit > 0 ? this.entries.slice(-limit) : [];
  }

  getHistory(limit = 50): RuntimeHistoryEntry[] {
    return this.history(limit);
  }

  /** Ends it and everything that it started. */
  async terminate(): Promise<void> {
    if (!this.isAlive) return;
    this.over();
    await this.live.end();
  }

  isAliveCheck(): boolean {
    return this.isAlive;
  }

  /** Milliseconds since 1970. */
  getLastActivityTime(): number {
    return this.lastActivityTime;
  }

  private async perform(action: "exec" | "eval", command: RuntimeCommand & { language: RuntimeType }): Promise<RuntimeOutput> {
    const { language, timeout = COMMAND_TIMEOUT_MS, signal, maxOutput } = command;
    this.touch();
    this.going += 1;
    const began = Date.now();
    let output: RuntimeOutput;
    try {
      output = await this.alive(async () => {
        const session = await this.live.session();
        const options = { language, timeout, ...(signal && { signal }), ...(maxOutput !== undefined && { maxOutput }) };
        return outputOf(await session[action](command.command, options), timeout);
      });
    } catch (error) {
      if (error instanceof SessionClosedError || error instanceof AbortError || !(error instanceof SessileError)) throw error;
      output = refusal(error.message);
    } finally {
      this.going -= 1;
      this.touch();
    }
    this.record(command.command, language, output, began);
    return output;
  }

  /** Notices that the session has ended elsewhere. */
  private async alive<T>(work: () => Promise<T>): Promise<T> {
    if (!this.isAlive) throw terminated();
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof SessionClosedError || error instanceof SessionNotFoundError)) throw error;
      this.over();
      throw terminated();
    }
  }

  private over(): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    clearTimeout(this.timer);
    this.emit("terminated");
  }

  private record(command: string, language: RuntimeType, output: RuntimeOutput, began: number): void {
    const { stdout, stderr, exitCode } = output;
    const kept = { stdout: stdout.slice(0, KEPT_CHARACTERS), stderr: stderr.slice(0, KEPT_CHARACTERS) };
    const entry: RuntimeHistoryEntry = { timestamp: began, command, language, ...kept, duration: Date.now() - began };
    this.entries.push(exitCode === undefined ? entry : { ...entry, exitCode });
    this.entries = this.entries.slice(-this.maxHistorySize);
  }

  private touch(): void {
    this.lastActivityTime = Date.now();
  }

  /** Looks again when the time would be over; a command that is going is activity. */
  private watch(ms: number): NodeJS.Timeout {
    // A longer one would fire at once.
    const timer = setTimeout(() => {
      const left = this.going > 0 ? this.timeoutMs : this.lastActivityTime + this.timeoutMs - Date.now();
      if (left > 0) this.timer = this.watch(left);
      // The server ends it, too, if this does not reach it.
      else this.terminate().catch(() => undefined);
    }, Math.min(ms, 2 ** 31 - 1));
    timer.unref();
    return timer;
  }
}

interface KernelState {
  workingDir?: string | null;
  envVars?: Record<string, string> | null;
  functions?: unknown;
  imports?: unknown;
}

/** A list of names, or of things that have one. */
function names(list: unknown): string[] {
  if (!Array.isArray(list)) return [];
  return list.map((item: unknown) => (typeof item === "string" ? item : String((item as { name?: unknown }).name)));
}

function refusal(error: string): RuntimeOutput {
  return { success: false, stdout: "", stderr: error, error };
}

function outputOf(result: Result, timeout: number): RuntimeOutput {
  const { success, stdout, stderr, exitCode } = result;
  const output: RuntimeOutput = { success, stdout, stderr, exitCode };
  const error = errorOf(result, timeout);
  if (error !== undefined) output.error = error;
  if (result.result !== undefined) output.result = result.result;
  if (result.kernel !== "kept") output.kernel = result.kernel;
  if (result.notes.length > 0) output.notes = result.notes;
  if (result.jobsEnded.length > 0) output.jobsEnded = result.jobsEnded;
  if (result.truncated) output.truncated = result.truncated;
  return output;
}

function errorOf(result: Result, timeout: number): string | undefined {
  if (result.timedOut) return `Command timeout after ${timeout}ms`;
  if (result.error) return result.error.message ? `${result.error.type}: ${result.error.message}` : result.error.type;
  return result.exitCode === 0 ? undefined : `exit code ${result.exitCode}`;
}

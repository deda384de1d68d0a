/** What came of a run. */
import { CommandError, CommandLimitError, CommandTimeoutError } from "./errors.js";
import { type Camel, type Schemas, camel } from "./shapes.js";

export type Language = Schemas["Language"];
/** A job of a shell that is over. `exitCode` is absent if the shell has forgotten it. */
export type EndedJob = Camel<Schemas["EndedJob"]>;
export type Continuity = Camel<Schemas["Continuity"]>;

/** A finished run. */
export class Result {
  /** What the command wrote, as text; see {@link stdoutBytes} for output that is none. */
  readonly stdout: string;
  readonly stderr: string;
  /** 0 to 255; 128 + n after signal n. */
  readonly exitCode: number;
  /** The run's number in its session. */
  readonly run: number;
  readonly language: Language;
  /** Milliseconds. */
  readonly duration: number;
  /** The value of the last expression, as text. */
  readonly result: string | undefined;
  /** Richer forms of the value, by MIME type. */
  readonly data: Record<string, unknown>;
  /** What the code raised. */
  readonly error: Schemas["RunError"] | undefined;
  /** `kept`, or what became of the interpreter: `restarted`, `restored`, `fresh`. */
  readonly kernel: string;
  /** What else there is to say, for people and models. */
  readonly notes: readonly string[];
  readonly timedOut: boolean;
  readonly interrupted: boolean;
  /** The answer to an earlier request with the same key. */
  readonly repeated: boolean;
  readonly truncated: Camel<Schemas["Truncations"]> | undefined;
  /** Limits of its sandbox that it has reached. */
  readonly limitsMet: readonly Schemas["MetLimit"][];
  /** Jobs of a shell that have ended since the previous run. */
  readonly jobsEnded: readonly EndedJob[];
  /** What happened to the session since it was last used. */
  readonly continuity: Continuity;
  private readonly bytes: { stdout?: Uint8Array; stderr?: Uint8Array } = {};

  constructor(wire: Schemas["RunResult"]) {
    this.stdout = this.text("stdout", wire);
    this.stderr = this.text("stderr", wire);
    this.exitCode = wire.exit_code;
    this.run = wire.run;
    this.language = wire.language;
    this.duration = wire.execution_time_ms;
    this.result = wire.result;
    this.data = wire.data ?? {};
    this.error = wire.error;
    this.kernel = wire.kernel;
    this.notes = wire.notes ?? [];
    this.timedOut = wire.timed_out;
    this.interrupted = wire.interrupted ?? false;
    this.repeated = wire.repeated ?? false;
    this.truncated = wire.truncated && camel(wire.truncated);
    this.limitsMet = wire.limits_met ?? [];
    this.jobsEnded = camel(wire.jobs_ended ?? []);
    this.continuity = wire.continuity ? camel(wire.continuity) : { status: "live" };
  }

  /** Whether it did what it should: it exited 0, and raised nothing. */
  get success(): boolean {
    return this.exitCode === 0 && !this.error && !this.timedOut;
  }

  /** What it wrote, byte for byte. */
  get stdoutBytes(): Uint8Array {
    return this.bytes.stdout ?? Buffer.from(this.stdout);
  }

  get stderrBytes(): Uint8Array {
    return this.bytes.stderr ?? Buffer.from(this.stderr);
  }

  /** This result if it was a success; throws a {@link CommandError} otherwise: a {@link CommandLimitError} if it has met a limit of its sandbox. */
  check(): this {
    if (this.success) return this;
    if (this.timedOut) throw new CommandTimeoutError(this, `the command was interrupted after ${this.duration} ms; the session's state is kept`);
    const why = this.error ? `${this.error.type}: ${this.error.message}` : `exit code ${this.exitCode}`;
    if (this.limitsMet.length > 0) throw new CommandLimitError(this, [why, ...this.notes].join("; "));
    const last = this.stderr.trimEnd().split("\n").at(-1);
    throw new CommandError(this, last && !this.error ? `${why}: ${last}` : why);
  }

  /** What it printed, as a command substitution has it. */
  toString(): string {
    return this.stdout.replace(/\n+$/, "");
  }

  /** The same with what was printed for its value: a shell has no other. */
  withPrinted(): Result {
    return Object.assign(Object.create(Result.prototype) as Result, this, { result: this.toString() });
  }

  private text(stream: "stdout" | "stderr", wire: Schemas["RunResult"]): string {
    if (wire.encoding?.[stream] !== "base64") return wire[stream];
    const bytes = Buffer.from(wire[stream], "base64");
    this.bytes[stream] = bytes;
    return bytes.toString("utf8");
  }
}

/** Whether a language has commands, and no values. */
export function isShell(language: Language): boolean {
  switch (language) {
    case "bash":
    case "sh":
    case "zsh":
      return true;
    case "python":
    case "node":
      return false;
  }
}

/** A run that may still be going. */
import type { Call, Client } from "./client.js";
import { AbortError, InvalidRequestError, SessileError } from "./errors.js";
import { type RunEvent, isLastOfRun, runEvent } from "./events.js";
import { Result } from "./result.js";
import { type Camel, type Schemas, type Span, camel, given, milliseconds, span } from "./shapes.js";
import { SHOWN } from "./shown.js";
import type { ServerEvent } from "./sse.js";

/**
 * One question waits this long for a run's end; then it is asked anew. Shorter
 * than what proxies allow a silent connection.
 */
export const WAIT_MS = 50_000;

/** Output of a run from some place on. */
export type RunOutput = Camel<Schemas["Output"]>;

/** What a terminal shows. */
export type Screen = Camel<Schemas["ScreenAnswer"]>;

export interface ScreenOptions {
  /** Wait until this is found on the screen: a regular expression (`^` and `$` are a line's ends). */
  waitFor?: string | RegExp;
  /** Wait until the screen has not changed for this long. */
  settle?: Span;
  /** Maximum time to wait. Default: 10 s. */
  wait?: Span;
  signal?: AbortSignal;
}

export interface SignalOption {
  signal?: AbortSignal | undefined;
}

/** How to read on when the server is back. */
export function goesOn(session: string, run: number | undefined): string {
  if (run === undefined) return "it is not known whether the run has begun; see the session's runs() when the server is back";
  return `the run goes on; when the server is back, (await Session.attach("${session}")).run(${run}) has it`;
}

/** A run of a session, by its number: begun by {@link Session.background}, or by somebody else. */
export class Run implements AsyncIterable<RunEvent> {
  private readonly path: string;

  constructor(
    private readonly client: Client,
    /** The session's id. */
    readonly session: string,
    /** The run's number in its session. */
    readonly number: number,
  ) {
    this.path = `/v1/sessions/${session}/runs/${number}`;
  }

  /** What `console.log` shows. */
  [SHOWN](): string {
    return `Run ${this.number} of ${this.session}`;
  }

  /**
   * Waits for the end. With `timeout`, `undefined` comes if it takes longer;
   * the run goes on, as it does if `signal` fires.
   */
  async wait(options?: SignalOption & { maxOutput?: number }): Promise<Result>;
  async wait(options: SignalOption & { maxOutput?: number; timeout: Span }): Promise<Result | undefined>;
  async wait(options: SignalOption & { maxOutput?: number; timeout?: Span } = {}): Promise<Result | undefined> {
    const limit = options.timeout === undefined ? Infinity : time(options.timeout);
    const began = performance.now();
    for (;;) {
      const left = limit - (performance.now() - began);
      const waits = Math.max(0, Math.min(left, WAIT_MS));
      const answer = await this.ask(waits, options);
      if (answer instanceof Result) return answer;
      if (performance.now() - began >= limit) return undefined;
      if (answer.waiting_for_input) await this.change(waits, answer.cursor, options.signal);
    }
  }

  /** The result if it is over; `undefined` if it is still going. */
  async result(options: SignalOption & { maxOutput?: number } = {}): Promise<Result | undefined> {
    const answer = await this.ask(0, options);
    return answer instanceof Result ? answer : undefined;
  }

  /** What it has written so far, or since `cursor`; with `wait`, waits while there is nothing new. */
  async output(options: SignalOption & { cursor?: string; wait?: Span; max?: number } = {}): Promise<RunOutput> {
    const { cursor = "0-0", wait, max, signal } = options;
    const query = { cursor, max, wait: wait === undefined ? undefined : span(wait) };
    const call: Call = { method: "GET", path: `${this.path}/output`, query, signal, lane: "wait", waits: wait === undefined ? 0 : time(wait) };
    return camel(await this.client.json<Schemas["Output"]>(call));
  }

  /** Everything that it writes, from the beginning or after the event `after`, to its end. */
  events(options: SignalOption & { after?: string } = {}): AsyncGenerator<RunEvent> {
    const reopen = (last: ServerEvent | undefined): Call => {
      const id = last?.id ?? options.after;
      return { method: "GET", path: `${this.path}/events`, lane: "wait", headers: id ? { "last-event-id": id } : {} };
    };
    return typed(this.client.events(reopen, isLastOfRun, options.signal, () => goesOn(this.session, this.number)));
  }

  [Symbol.asyncIterator](): AsyncGenerator<RunEvent> {
    return this.events();
  }

  /** Writes to its stdin (of a run that is `interactive`) or types on its terminal. */
  async input(data: string | Uint8Array, options: SignalOption & { eof?: boolean } = {}): Promise<void> {
    const isText = typeof data === "string";
    const json = given({
      data: isText ? data : Buffer.from(data).toString("base64"),
      encoding: isText ? undefined : ("base64" as const),
      eof: options.eof,
    });
    await this.client.json({ method: "POST", path: `${this.path}/input`, json, signal: options.signal });
  }

  /** Tells it that there will be no more input. */
  async endInput(options: SignalOption = {}): Promise<void> {
    await this.input("", { ...options, eof: true });
  }

  /** Signals what it has in the foreground (`"INT"`, `"TERM"`, …), or has left in the background; how many processes got it. */
  async signal(name: string | number, options: SignalOption = {}): Promise<number> {
    const json = { signal: String(name).replace(/^SIG/, "") };
    const told = await this.client.json<Schemas["Signalled"]>({ method: "POST", path: `${this.path}/signal`, json, signal: options.signal });
    return told.processes;
  }

  /** Interrupts it; the session's state is kept. Whether it was still going. */
  async interrupt(options: SignalOption = {}): Promise<boolean> {
    const path = `/v1/sessions/${this.session}/interrupt`;
    const told = await this.client.json<Schemas["Interrupted"]>({ method: "POST", path, json: { run: this.number }, repeatable: "safe", signal: options.signal });
    return told.interrupted;
  }

  /** The screen of its terminal, as a person would see it. */
  async screen(options: ScreenOptions = {}): Promise<Screen> {
    const query = { ...waiting(options), format: "json" };
    return camel(await this.client.json<Schemas["ScreenAnswer"]>(this.screenCall(query, options)));
  }

  /** A picture of the screen. */
  async picture(format: "png" | "svg", options: ScreenOptions = {}): Promise<Uint8Array> {
    const response = await this.client.bytes(this.screenCall({ ...waiting(options), format }, options));
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks);
  }

  /** Types keys on its terminal: text as it is, others by name (`<Enter>`, `<Esc>`, `<C-c>`); answers with the screen. */
  async keys(keys: string, options: ScreenOptions = {}): Promise<Screen> {
    const json = { keys, ...waiting(options) };
    const call: Call = { method: "POST", path: `${this.path}/keys`, json, signal: options.signal, lane: "wait", waits: patience(options) };
    return camel(await this.client.json<Schemas["ScreenAnswer"]>(call));
  }

  /** Gives its terminal another size. */
  async resize(cols: number, rows: number, options: SignalOption = {}): Promise<void> {
    await this.client.json({ method: "POST", path: `${this.path}/resize`, json: { cols, rows }, repeatable: "safe", signal: options.signal });
  }

  private async ask(waits: number, options: SignalOption & { maxOutput?: number }): Promise<Result | Schemas["Output"]> {
    const query = { wait: waits / 1000, max_output: options.maxOutput };
    const call: Call = { method: "GET", path: this.path, query, lane: "wait", waits, signal: options.signal };
    const { status, value } = await this.client.answer<Schemas["RunResult"] | Schemas["Output"]>(call);
    return status === 202 ? (value as Schemas["Output"]) : new Result(value as Schemas["RunResult"]);
  }

  /** A run that waits for input is told of at once, so its end is waited for by its output. */
  private async change(waits: number, cursor: string, signal: AbortSignal | undefined): Promise<void> {
    await this.output({ cursor, wait: Math.min(waits, 1000), signal });
  }

  private screenCall(query: NonNullable<Call["query"]>, options: ScreenOptions): Call {
    return { method: "GET", path: `${this.path}/screen`, query, signal: options.signal, lane: "wait", waits: patience(options) };
  }
}

/** A run's events as ours. */
export async function* typed(events: AsyncIterable<ServerEvent>): AsyncGenerator<RunEvent> {
  for await (const event of events) {
    const known = runEvent(event);
    if (known) yield known;
  }
}

/** Interrupts a run whose caller has gone, and waits until it is over. */
export async function interruptAborted(run: Run, reason: unknown): Promise<AbortError> {
  try {
    await run.interrupt();
    await run.wait({ timeout: INTERRUPT_MS, maxOutput: 0 });
  } catch (error) {
    // It was over, or its session is: nothing is left to interrupt.
    if (!(error instanceof SessileError)) throw error;
  }
  return new AbortError(reason, { run: run.number });
}

/** An interrupt takes two seconds at the worst: then the interpreter is started anew. */
const INTERRUPT_MS = 10_000;

function waiting(options: ScreenOptions): { wait_for?: string; settle?: string | number; wait?: string | number } {
  const { waitFor, settle, wait } = options;
  return given({
    wait_for: waitFor instanceof RegExp ? waitFor.source : waitFor,
    settle: settle === undefined ? undefined : span(settle),
    wait: wait === undefined ? undefined : span(wait),
  });
}

function patience(options: ScreenOptions): number {
  return options.wait === undefined ? 10_000 : time(options.wait);
}

/** In milliseconds. */
export function time(value: Span): number {
  const ms = milliseconds(value);
  if (ms !== undefined && ms >= 0) return ms;
  throw new InvalidRequestError(`${JSON.stringify(value)} is no length of time`, {
    code: "invalid_argument",
    hint: 'give milliseconds, or text such as "30s" or "500ms"',
  });
}

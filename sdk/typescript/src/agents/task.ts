/** A task of an agent, which the server carries out, whatever becomes of this program. */
import type { Call } from "../client.js";
import { AbortError, NotFoundError, SessileError } from "../errors.js";
import { type SignalOption, WAIT_MS } from "../run.js";
import { type Schemas, camel } from "../shapes.js";
import type { ServerEvent } from "../sse.js";
import type { Agent } from "./agent.js";
import { type AgentEvent, Reader, type ToolCall } from "./events.js";
import { AgentResult, Steps, type TaskInfo } from "./result.js";

/** The decision on a call, and the message for the model if it is denied. */
export type Verdict = boolean | { allow: boolean; reason?: string };

/** Asked about each call that waits for approval. */
export type Approver = (call: ToolCall, task: Task) => Verdict | Promise<Verdict>;

export interface FollowOptions extends SignalOption {
  /** Asked about calls that wait for approval; without it they wait for somebody else. */
  onApproval?: Approver | undefined;
}

/** How long an aborted task is waited for: what it runs is interrupted first. */
const CANCEL_MS = 15_000;

export class Task implements AsyncIterable<AgentEvent> {
  private readonly path: string;
  private readonly steps = new Steps();

  constructor(
    readonly agent: Agent,
    readonly sessionId: string,
    /** Its number in the thread. */
    readonly number: number,
    /** An entry of the thread before it. */
    private readonly after = 0,
  ) {
    this.path = `/v1/agents/${encodeURIComponent(sessionId)}`;
  }

  /**
   * What happens, from the task's beginning to its end, across broken
   * connections. Leaving the loop leaves the task going; `signal` cancels it.
   */
  async *events(options: FollowOptions = {}): AsyncGenerator<AgentEvent> {
    const { signal, onApproval } = options;
    const asked = new Set<string>();
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal?.reason);
    if (signal?.aborted) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    // An approver that throws ends the loop as a signal would.
    const failed: { error?: unknown } = {};
    try {
      for await (const event of this.follow(stop.signal)) {
        if (event.type === "approve" && onApproval && !asked.has(event.call.id)) {
          asked.add(event.call.id);
          void this.approve(event.call, onApproval).catch((error: unknown) => {
            failed.error = error;
            stop.abort(error);
          });
        }
        yield event;
      }
    } catch (error) {
      if (!(error instanceof AbortError)) throw error;
      await this.end();
      throw failed.error ?? new AbortError(signal?.reason, { reached: true });
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  [Symbol.asyncIterator](): AsyncGenerator<AgentEvent> {
    return this.events();
  }

  /** Waits for the end. Throws a {@link TaskFailedError} if the model could not be had. */
  async result(options: FollowOptions = {}): Promise<AgentResult> {
    for await (const _ of this.events(options)) {
      // Only the end is wanted.
    }
    return this.over(options);
  }

  /** The result of a task whose events were read to the end. */
  async over(options: SignalOption = {}): Promise<AgentResult> {
    return new AgentResult(await this.show(0, options.signal), this.steps.all).check();
  }

  /** Stops it. What it has done stays; what it runs is interrupted. */
  async cancel(options: SignalOption = {}): Promise<void> {
    await this.agent.runtime.client.json({ method: "POST", path: `${this.path}/cancel`, repeatable: "safe", signal: options.signal });
  }

  /** Says whether a call may be carried out. `false` if it does not wait (any more). */
  async decide(call: string, verdict: Verdict, options: SignalOption = {}): Promise<boolean> {
    const { allow, reason } = typeof verdict === "boolean" ? { allow: verdict, reason: undefined } : verdict;
    const json = reason === undefined ? { call, allow } : { call, allow, reason };
    try {
      await this.agent.runtime.client.json({ method: "POST", path: `${this.path}/approvals`, json, repeatable: "safe", signal: options.signal });
      return true;
    } catch (error) {
      if (error instanceof NotFoundError) return false;
      throw error;
    }
  }

  private async approve(call: ToolCall, approver: Approver): Promise<void> {
    await this.decide(call.id, await approver(call, this));
  }

  private async *follow(signal: AbortSignal): AsyncGenerator<AgentEvent> {
    const reader = new Reader();
    let isOurs = false;
    const reopen = (last: ServerEvent | undefined): Call => {
      const id = last?.id || (this.after > 0 ? String(this.after) : undefined);
      return { method: "GET", path: `${this.path}/events`, lane: "wait", headers: id ? { "last-event-id": id } : {} };
    };
    const isLast = ({ event, data }: ServerEvent) => event === "ended" && (JSON.parse(data) as { task: number }).task === this.number;
    const goingOn = () => `the task goes on as soon as the server is back; then an agent's resumeSession(${JSON.stringify(this.sessionId)}) and lastTask() return to it`;
    for await (const message of this.agent.runtime.client.events(reopen, isLast, signal, goingOn)) {
      const event = reader.read(message);
      if (event.type === "task") isOurs = event.task === this.number;
      if (!isOurs) continue;
      this.steps.take(event);
      yield event;
    }
  }

  /** Cancels it, and sees it end. */
  private async end(): Promise<void> {
    try {
      await this.cancel();
      await this.show(CANCEL_MS);
    } catch (error) {
      // It was over, or its session is: nothing is left to cancel.
      if (!(error instanceof SessileError)) throw error;
    }
  }

  private async show(waits: number, signal?: AbortSignal): Promise<TaskInfo> {
    const wait = Math.min(waits, WAIT_MS);
    const call: Call = { method: "GET", path: `${this.path}/tasks/${this.number}`, query: { wait: `${wait}ms` }, lane: "wait", waits: wait, signal };
    return camel(await this.agent.runtime.client.json<Schemas["TaskInfo"]>(call));
  }
}

/** Stream the events of an agent's thread. */
import { type Camel, camel, given } from "../shapes.js";
import type { ServerEvent } from "../sse.js";
import type { AgentContinuity, TaskInfo } from "./result.js";

/** A call that the model wants to have carried out. */
export interface ToolCall {
  /** The model's name for it. */
  id: string;
  tool: string;
  /** Its arguments, as the model gave them. */
  input: Record<string, unknown>;
  /** What the model gave in their place, if that is no JSON object. */
  malformed?: string;
}

/** Tokens of the model. */
export interface Usage {
  inputTokens: number;
  /** Of these, so many were in the model's cache. */
  cachedTokens: number;
  outputTokens: number;
}

interface Entry {
  /** Its number in the thread. */
  entry: number;
  at: Date;
}

export interface TaskEvent extends Entry {
  type: "task";
  task: number;
  text: string;
}

/** Words of the model as they come; the reply has them again as a whole. */
export interface DeltaEvent {
  type: "delta";
  text: string;
}

export interface ReplyEvent extends Entry {
  type: "reply";
  task: number;
  /** Its number among all steps of the thread, for {@link Agent.rewind}. */
  step: number;
  text: string;
  calls: ToolCall[];
  usage: Usage;
}

/** A call waits for somebody's word: see {@link Agent.decide}. */
export interface ApproveEvent {
  type: "approve";
  call: ToolCall;
}

export interface ApprovalEvent extends Entry {
  type: "approval";
  call: string;
  allowed: boolean;
  reason: string;
}

/** A file is about to be changed, from one content to another. */
export interface IntentEvent extends Entry {
  type: "intent";
  call: string;
  /** SHA-256 of what is in the file; absent if there is none. */
  before: string | undefined;
  /** SHA-256 of the file after the change. */
  after: string;
}

/** What came of a call. */
export interface OutcomeEvent extends Entry {
  type: "outcome";
  call: string;
  text: string;
  isError: boolean;
  /** The run that it started in the session. */
  run: number | undefined;
}

/** The conversation so far, summed up by the model. */
export interface SummaryEvent extends Entry {
  type: "summary";
  text: string;
}

/** The session was lost, and goes on: what could be brought back, and what could not. */
export interface ContinuedEvent extends Entry {
  type: "continued";
  continuity: AgentContinuity;
}

/** The model has failed, and is asked once more. Words since the last entry do not count. */
export interface RetryEvent {
  type: "retry";
  /** The attempt that has failed: 1, 2, … */
  attempt: number;
  /** Time until the next attempt. */
  afterMs: number;
  failure: NonNullable<TaskInfo["failure"]>;
}

export interface EndedEvent extends Entry {
  type: "ended";
  task: number;
  ended: Ending;
}

/** An event that this version has no name for. */
export interface OtherEvent {
  type: "other";
  name: string;
  data: Record<string, unknown>;
}

/** How a task ended. */
export type Ending = "done" | "limit" | "cancelled" | "refused" | "failed";

export type AgentEvent =
  | TaskEvent
  | DeltaEvent
  | ReplyEvent
  | ApproveEvent
  | ApprovalEvent
  | IntentEvent
  | OutcomeEvent
  | SummaryEvent
  | ContinuedEvent
  | RetryEvent
  | EndedEvent
  | OtherEvent;

interface Block {
  type: string;
  text?: string;
  id?: string;
  tool?: string;
  input?: { json?: Record<string, unknown>; malformed?: string };
}

/**
 * Events as they come, in our words. A call that waits is told by its id alone;
 * the reply that it stands in came before.
 */
export class Reader {
  private readonly calls = new Map<string, ToolCall>();

  read({ event, data }: ServerEvent): AgentEvent {
    const wire = JSON.parse(data) as Record<string, unknown>;
    const at = { entry: Number(wire["entry"]), at: new Date(Number(wire["at_ms"])) };
    const text = String(wire["text"] ?? "");
    const task = Number(wire["task"]);
    switch (event) {
      case "delta":
        return { type: "delta", text };
      case "task":
        return { type: "task", ...at, task, text };
      case "reply":
        return { type: "reply", ...at, task, step: Number(wire["step"]), ...this.reply(wire["blocks"] as Block[]), usage: usage(wire["usage"]) };
      case "approve":
        return { type: "approve", call: this.call(String(wire["call"])) };
      case "approval": {
        const { allowed, reason } = verdict(wire["verdict"]);
        return { type: "approval", ...at, call: String(wire["call"]), allowed, reason };
      }
      case "intent":
        return { type: "intent", ...at, call: String(wire["call"]), before: wire["before"] as string | undefined, after: String(wire["after"]) };
      case "outcome":
        return { type: "outcome", ...at, call: String(wire["call"]), text, isError: wire["is_error"] === true, run: wire["run"] as number | undefined };
      case "summary":
        return { type: "summary", ...at, text };
      case "continued":
        return { type: "continued", ...at, continuity: continuity(wire) };
      case "retry": {
        const { attempt, after_ms: afterMs, failure } = wire;
        return { type: "retry", attempt: Number(attempt), afterMs: Number(afterMs), failure: camel(failure as object) as RetryEvent["failure"] };
      }
      case "ended":
        return { type: "ended", ...at, task, ended: wire["ended"] as Ending };
      default:
        return { type: "other", name: event, data: camel(wire) as Camel<Record<string, unknown>> };
    }
  }

  private reply(blocks: Block[]): { text: string; calls: ToolCall[] } {
    const calls = blocks
      .filter(({ type }) => type === "call")
      .map(({ id = "", tool = "", input }): ToolCall => ({ id, tool, input: input?.json ?? {}, ...given({ malformed: input?.malformed }) }));
    for (const call of calls) this.calls.set(call.id, call);
    const texts = blocks.filter(({ type }) => type === "text").map(({ text }) => text ?? "");
    return { text: texts.join("\n"), calls };
  }

  private call(id: string): ToolCall {
    return this.calls.get(id) ?? { id, tool: "", input: {} };
  }
}

function usage(wire: unknown): Usage {
  const { inputTokens = 0, cachedTokens = 0, outputTokens = 0 } = camel((wire ?? {}) as Record<string, number>) as Partial<Usage>;
  return { inputTokens, cachedTokens, outputTokens };
}

function continuity(wire: Record<string, unknown>): AgentContinuity {
  const { status, as_of_run, lost } = wire;
  return camel(given({ status, as_of_run, lost })) as AgentContinuity;
}

function verdict(wire: unknown): { allowed: boolean; reason: string } {
  if (wire === "allowed") return { allowed: true, reason: "" };
  return { allowed: false, reason: String((wire as { denied?: string } | undefined)?.denied ?? "") };
}

/** What came of a task. */
import { SessileError } from "../errors.js";
import type { Camel, Schemas } from "../shapes.js";
import type { AgentEvent, Ending, OutcomeEvent, ReplyEvent, ToolCall, Usage } from "./events.js";

/** A call that was carried out, and what came of it. */
export type DoneCall = ToolCall & Pick<OutcomeEvent, "isError" | "run"> & { output: string };

/** One answer of the model, and what it led to. */
export interface Step {
  /** Its number among all steps of the thread, for {@link Agent.rewind}. */
  number: number;
  /** Where it is in the thread. */
  entry: number;
  text: string;
  calls: DoneCall[];
  usage: Usage;
}

/** What had become of the session when the task began: `live`, `restored` with what was `lost`, or `fresh`. */
export type AgentContinuity = Camel<Schemas["AgentContinuity"]>;

/** A task, as the server tells of it. */
export type TaskInfo = Camel<Schemas["TaskInfo"]>;

/** A task that is over. */
export class AgentResult {
  readonly sessionId: string;
  readonly threadId: string;
  /** The task's number in its thread. */
  readonly task: number;
  /** What the model said in the end; empty if it was not heard to the end. */
  readonly output: string;
  readonly ended: Ending;
  /** Which limit ended it: `steps`, `tokens`, `time` or `cost`. */
  readonly limit: string | undefined;
  /** Why the model could not be had: a stable word, and what to do. */
  readonly failure: TaskInfo["failure"];
  /** The model's last answer was longer than it may be. */
  readonly isCutOff: boolean;
  readonly usage: Usage;
  /** In the currency of the model's prices. */
  readonly cost: number;
  /** What happened to the session since it was last used. */
  readonly continuity: AgentContinuity;

  constructor(
    info: TaskInfo,
    /** What was done, in its order. */
    readonly steps: readonly Step[],
  ) {
    this.sessionId = info.sessionId;
    this.threadId = info.threadId;
    this.task = info.task;
    this.output = info.output ?? "";
    this.ended = info.ended ?? "done";
    this.limit = info.limit;
    this.failure = info.failure;
    this.isCutOff = info.isCutOff ?? false;
    const { inputTokens = 0, cachedTokens = 0, outputTokens = 0, cost = 0 } = info.spent ?? {};
    this.usage = { inputTokens, cachedTokens, outputTokens };
    this.cost = cost;
    this.continuity = info.continuity;
  }

  /** Whether the model did what it was asked, by its own word. */
  get success(): boolean {
    return this.ended === "done";
  }

  /** This result if the model could be had; throws a {@link TaskFailedError} otherwise. */
  check(): this {
    if (this.ended === "failed") throw new TaskFailedError(this);
    return this;
  }
}

/** The model could not be had: a wrong key, an unknown model, a server that does not answer. */
export class TaskFailedError extends SessileError {
  constructor(readonly result: AgentResult) {
    const { fault = "failed", message = "the task has failed" } = result.failure ?? {};
    super(message, { code: fault, hint: "the agent is as it was before the failed step; the next task goes on from there" });
  }
}

/** Steps, gathered from events. */
export class Steps {
  private readonly steps: Step[] = [];
  private readonly open = new Map<string, DoneCall>();

  take(event: AgentEvent): void {
    if (event.type === "reply") this.reply(event);
    else if (event.type === "outcome") this.outcome(event);
  }

  get all(): readonly Step[] {
    return this.steps;
  }

  private reply({ entry, step, text, calls, usage }: ReplyEvent): void {
    const done = calls.map((call): DoneCall => ({ ...call, output: "", isError: false, run: undefined }));
    for (const call of done) this.open.set(call.id, call);
    this.steps.push({ number: step, entry, text, calls: done, usage });
  }

  private outcome({ call, text, isError, run }: OutcomeEvent): void {
    const open = this.open.get(call);
    if (open) Object.assign(open, { output: text, isError, run });
  }
}

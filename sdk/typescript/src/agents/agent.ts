/** Agents: a session with a model that works in it, and remembers what was said. */
import { resolve } from "node:path";
import { newKey } from "../client.js";
import { InvalidRequestError, SessionClosedError } from "../errors.js";
import type { SignalOption } from "../run.js";
import { type SandboxPolicy, wirePolicy } from "../policy.js";
import { environment } from "../requests.js";
import { Session } from "../session.js";
import type { Restored } from "../saving.js";
import { type Camel, type Schemas, camel, given } from "../shapes.js";
import type { AgentEvent } from "./events.js";
import { move } from "./moving.js";
import type { AgentResult, TaskInfo } from "./result.js";
import { LocalRuntime, type Runtime } from "./runtime.js";
import { type Approver, type FollowOptions, Task } from "./task.js";

export interface AgentOptions {
  /** `computer`, the only kind: it works with a shell, interpreters and files. */
  agentType?: "computer";
  /** Where it works. Default: on this machine. */
  runtime?: Runtime;
  /** The directory that it works in, on the runtime's machine. Default: the current one. */
  workspace?: string;
  /** A name for its session. */
  name?: string;
  /** The model. Default: the server's only one. */
  model?: string;
  /** Instructions for the model. */
  instructions?: string;
  /** Environment variables of its session. */
  env?: Record<string, string>;
  /** Confines its session: what it may see, touch and use. */
  sandbox?: SandboxPolicy;
  /** Tools whose calls wait for approval; `*` stands for all. Default: all, if there is an `onApproval`. */
  approve?: string[];
  /** Asked about each such call. */
  onApproval?: Approver;
  /** For tasks that do not say. */
  limits?: Limits;
  /** How many steps can be taken back, files included; 0: none. Default: 10. */
  checkpoints?: number;
  /** Save its session in idle time, so that it goes on after a reboot. Default: as the server was told. */
  durable?: boolean;
}

/** What a task may use up. */
export interface Limits {
  /** How often the model is asked; default: 100. */
  maxSteps?: number;
  maxTokens?: number;
  maxTimeMs?: number;
  /** In the currency of the model's prices. */
  maxCost?: number;
  /** Of a million tokens, for `maxCost`. Default: as the server's configuration has it for the model. */
  price?: { input?: number; cachedInput?: number; output?: number };
  /** Summarize the conversation when a request had more tokens than this. */
  compactAboveTokens?: number;
}

export interface TaskOptions extends FollowOptions {
  limits?: Limits;
  /** Under which the task is begun once, however often it is asked for. Default: a new one. */
  idempotencyKey?: string;
}

type AgentWire = Schemas["AgentInfo"];

/** An agent, as the server tells of it. */
export type AgentInfo = Camel<AgentWire>;

/** What was taken back: steps and tasks of the thread, and runs of the session. */
export type RewoundAgent = Camel<Schemas["RewoundAgent"]>;

/** The session and the thread that an agent is in. */
interface Seat {
  sessionId: string;
  threadId: string;
  /** How long the thread was when it was last looked at. */
  entries: number;
}

export class Agent {
  private where: Runtime;
  private seat: Seat | undefined;
  private taking: Promise<Seat> | undefined;

  constructor(readonly options: AgentOptions = {}) {
    const { agentType, runtime } = options;
    if (agentType !== undefined && agentType !== "computer") {
      throw new InvalidRequestError(`there is no agentType ${JSON.stringify(agentType)}`, { code: "invalid_argument", hint: 'leave it out, or give "computer"' });
    }
    this.where = runtime ?? new LocalRuntime();
  }

  /** Where it works. */
  get runtime(): Runtime {
    return this.where;
  }

  /** Its session, from its first task on. */
  get currentSessionId(): string | undefined {
    return this.seat?.sessionId;
  }

  /** Its thread, from its first task on. */
  get currentThreadId(): string | undefined {
    return this.seat?.threadId;
  }

  /** Begins a task, and does not wait for it. The first one makes the session. */
  async begin(task: string, options: TaskOptions = {}): Promise<Task> {
    const { signal, idempotencyKey = newKey(), limits = this.options.limits } = options;
    const { sessionId, entries } = await this.sit(signal);
    const json = given({ text: task, limits: limits && wireLimits(limits) });
    const path = `${pathOf(sessionId)}/tasks`;
    const begun = await this.client.json<{ task: number }>({ method: "POST", path, json, headers: { "idempotency-key": idempotencyKey }, repeatable: "safe", signal });
    return new Task(this, sessionId, begun.task, entries);
  }

  /** Carries a task out, and tells what happens. The generator returns the result. */
  async *stream(task: string, options: TaskOptions = {}): AsyncGenerator<AgentEvent, AgentResult> {
    const begun = await this.begin(task, options);
    yield* begun.events({ onApproval: this.options.onApproval, ...options });
    return this.finished(await begun.over(options));
  }

  /** Carries a task out; see {@link run}. */
  async run(task: string, options: TaskOptions = {}): Promise<AgentResult> {
    const begun = await this.begin(task, options);
    return this.finished(await begun.result({ onApproval: this.options.onApproval, ...options }));
  }

  /** The last task, whoever began it: to follow one that goes on since before this program began. */
  async lastTask(options: SignalOption = {}): Promise<Task | undefined> {
    const [last] = await this.tasks({ ...options, limit: 1 });
    return last && new Task(this, last.sessionId, last.task);
  }

  /** What it is doing. */
  async info(options: SignalOption = {}): Promise<AgentInfo> {
    return this.look(this.sat().sessionId, options);
  }

  /** Its session: what it has there can be used by hand, too. */
  async session(options: SignalOption = {}): Promise<Session> {
    return Session.attach(this.sat().sessionId, { client: this.client, ...options });
  }

  /** The next task begins a new session and a new thread. The old ones stay: see {@link resumeSession}. */
  resetSession(): void {
    this.seat = undefined;
    this.taking = undefined;
  }

  /** Goes on in a session of before, by its id or name, whichever program it was of. */
  async resumeSession(id: string, options: SignalOption = {}): Promise<AgentInfo> {
    const info = await this.look(id, options);
    this.take(info);
    return info;
  }

  /** Agents with the same past, each with a session and a thread of its own. */
  async fork(count = 1, options: SignalOption & { files?: "share" | "copy" } = {}): Promise<Agent[]> {
    const { signal, files } = options;
    const json = given({ count, files });
    const forked = await this.client.json<{ agents: AgentWire[] }>({ method: "POST", path: `${pathOf(this.sat().sessionId)}/fork`, json, signal });
    return forked.agents.map((wire) => this.another(camel(wire)));
  }

  /** Takes back everything after a step: conversation, interpreters and files. 0 is before the first one. */
  async rewind(step: number, options: SignalOption = {}): Promise<RewoundAgent> {
    return this.back("rewind", { step }, options);
  }

  /** Takes back the last task. */
  async undo(options: SignalOption = {}): Promise<RewoundAgent> {
    return this.back("undo", undefined, options);
  }

  /**
   * Moves it, with its session, its files and its thread. It goes on there; here
   * its session ends, and says where it is. `workspace` is the directory to go on
   * in, new or empty; default: where it was. Answers with what could not be moved.
   */
  async moveTo(runtime: Runtime, options: SignalOption & { workspace?: string; model?: string } = {}): Promise<Restored> {
    const { agent, session } = await move(this.sat().sessionId, this.where, runtime, options);
    this.where = runtime;
    this.take(agent);
    return session;
  }

  /** Its tasks, newest first. */
  async tasks(options: SignalOption & { limit?: number } = {}): Promise<TaskInfo[]> {
    const { signal, limit } = options;
    const path = `${pathOf(this.sat().sessionId)}/tasks`;
    return (await this.client.json<Schemas["TaskList"]>({ method: "GET", path, query: { limit }, signal })).tasks.map(camel);
  }

  /**
   * Ends its session and everything that it started. The thread and its record
   * stay. It takes no more tasks then, unless {@link resetSession} lets the next
   * one begin a new session.
   */
  async end(options: SignalOption = {}): Promise<void> {
    if (!this.seat) return;
    try {
      await (await this.session(options)).end(options);
    } catch (error) {
      if (!(error instanceof SessionClosedError)) throw error;
    }
  }

  private get client() {
    return this.where.client;
  }

  private async back(action: "rewind" | "undo", json: object | undefined, options: SignalOption): Promise<RewoundAgent> {
    const path = `${pathOf(this.sat().sessionId)}/${action}`;
    return camel(await this.client.json<Schemas["RewoundAgent"]>({ method: "POST", path, json, signal: options.signal }));
  }

  private another(info: AgentInfo): Agent {
    const agent = new Agent({ ...this.options, runtime: this.where });
    agent.take(info);
    return agent;
  }

  private take(info: AgentInfo): Seat {
    this.taking = undefined;
    return (this.seat = { sessionId: info.sessionId, threadId: info.threadId, entries: info.entries });
  }

  private finished(result: AgentResult): AgentResult {
    const last = result.steps.at(-1)?.entry ?? 0;
    if (this.seat && this.seat.sessionId === result.sessionId) this.seat.entries = Math.max(this.seat.entries, last);
    return result;
  }

  private sat(): Seat {
    if (this.seat) return this.seat;
    throw new InvalidRequestError("this agent has no session yet", { code: "invalid_argument", hint: "give it a task, or have it resume a session" });
  }

  /** However many tasks are the first, there is one session. */
  private async sit(signal: AbortSignal | undefined): Promise<Seat> {
    if (this.seat) return this.seat;
    const taking = (this.taking ??= this.make(signal));
    try {
      const seat = await taking;
      if (this.taking === taking) this.seat = seat;
      return seat;
    } finally {
      if (this.taking === taking) this.taking = undefined;
    }
  }

  private async make(signal: AbortSignal | undefined): Promise<Seat> {
    const { workspace, name, model, instructions, env, sandbox, onApproval, checkpoints, durable } = this.options;
    const { isLocal } = this.client;
    const json = given({
      workspace: isLocal ? resolve(workspace ?? ".") : workspace,
      name,
      model,
      instructions,
      env: environment(env, isLocal && sandbox === undefined),
      sandbox: sandbox === undefined ? undefined : wirePolicy(sandbox),
      approve: this.options.approve ?? (onApproval && ["*"]),
      checkpoints,
      durable,
    } satisfies { [K in keyof Schemas["StartAgent"]]?: unknown });
    const headers = { "idempotency-key": newKey() };
    const made = camel(await this.client.json<AgentWire>({ method: "POST", path: "/v1/agents", json, headers, repeatable: "safe", signal }));
    return { sessionId: made.sessionId, threadId: made.threadId, entries: made.entries };
  }

  private async look(id: string, options: SignalOption): Promise<AgentInfo> {
    return camel(await this.client.json<AgentWire>({ method: "GET", path: pathOf(id), signal: options.signal }));
  }
}

/** Carries a task out, in the agent's session and thread; the first task makes them. */
export function run(agent: Agent, task: string, options: TaskOptions = {}): Promise<AgentResult> {
  return agent.run(task, options);
}

/** The same, as it happens. */
export function stream(agent: Agent, task: string, options: TaskOptions = {}): AsyncGenerator<AgentEvent, AgentResult> {
  return agent.stream(task, options);
}

function pathOf(id: string): string {
  return `/v1/agents/${encodeURIComponent(id)}`;
}

function wireLimits(limits: Limits): object {
  // What JavaScript may have besides is for the server to refuse by name.
  const { maxSteps, maxTokens, maxTimeMs, maxCost, compactAboveTokens, price, ...unknown } = limits;
  return given({ max_steps: maxSteps, max_tokens: maxTokens, max_time_ms: maxTimeMs, max_cost: maxCost, compact_above_tokens: compactAboveTokens, price: price && wirePrice(price), ...unknown });
}

function wirePrice({ input, cachedInput, output, ...unknown }: NonNullable<Limits["price"]>): object {
  return given({ input, cached_input: cachedInput, output, ...unknown });
}

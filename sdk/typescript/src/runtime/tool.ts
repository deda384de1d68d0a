/** The `runtime` tool for agents. */
import type { Client } from "../client.js";
import type { SandboxPolicy } from "../policy.js";
import { given } from "../shapes.js";
import { globalRuntimeManager, type RuntimeSessionManager } from "./manager.js";
import type { RuntimeSession } from "./session.js";
import { type RuntimeType } from "./types.js";

const ACTIONS = ["exec", "eval", "state", "reset", "history"] as const;

type Action = (typeof ACTIONS)[number];

/** What a model sends. */
export interface RuntimeToolInput {
  action: Action;
  command?: string;
  language?: RuntimeType;
  /** Of `history`. */
  limit?: number;
  /** Milliseconds. */
  timeout?: number;
}

/** What it gets back. */
export interface RuntimeToolOutput {
  success: boolean;
  stdout?: string;
  stderr?: string;
  exitCode?: number;
  error?: string;
  result?: string;
  state?: unknown;
  history?: { timestamp: number; command: string; language: string; duration: number; exitCode?: number }[];
  [other: string]: unknown;
}

export interface ToolOptions {
  client?: Client;
  /** What the agent's commands may see, touch and use; the agent cannot change it. */
  sandbox?: SandboxPolicy;
  env?: Record<string, string>;
  timeoutMs?: number;
  maxHistorySize?: number;
  /** Bytes of each stream that an answer carries; default: 16000. */
  maxOutput?: number;
  manager?: RuntimeSessionManager;
}

/** A tool as agents' loops take it: `execute` with pi's shape, `call` with Anthropic's. */
export interface RuntimeTool {
  name: "runtime";
  label: string;
  description: string;
  /** The schema of the input, under the two names that are in use. */
  parameters: typeof SCHEMA;
  input_schema: typeof SCHEMA;
  execute(
    toolCallId: string,
    params: unknown,
    signal?: AbortSignal,
  ): Promise<{ content: { type: "text"; text: string }[]; details: RuntimeToolOutput }>;
  call(input: unknown, signal?: AbortSignal): Promise<{ type: "tool_result"; content: string }>;
}

const MAX_OUTPUT = 16_000;

const SCHEMA = {
  type: "object",
  properties: {
    action: {
      type: "string",
      enum: ["exec", "eval", "state", "reset", "history"],
      description: "exec (run a command), eval (value of code), state (variables, imports, directory), reset (start anew), history (what was run)",
    },
    command: { type: "string", description: "Command or code, any number of lines (required for exec and eval)" },
    language: { type: "string", enum: ["bash", "python", "node"], description: "Default: bash for exec, python for eval" },
    limit: { type: "number", description: "Newest entries (history); default: 20" },
    timeout: { type: "number", description: "Milliseconds after which the command is interrupted; default: 30000. The state is kept" },
  },
  required: ["action"],
} as const;

const DESCRIPTION =
  "Session-scoped runtime for persistent bash, Python and Node environments. Variables, functions, imports, working directory and background processes persist across calls. " +
  "Supports: exec (run command), eval (value of the last expression), state (inspect variables, imports, directory), reset (clear session), history (show recent commands).";

/**
 * The tool for one workspace: its directory, or any name for the current one.
 * Tools with different keys have sessions of their own.
 */
export function createRuntimeTool(workspaceId: string, sessionKey?: string, options: ToolOptions = {}): RuntimeTool {
  const workspace = workspaceId || "default";
  const { manager = globalRuntimeManager, maxOutput = MAX_OUTPUT, ...config } = options;
  const session = () => manager.getOrCreateSession(sessionKey ? `${workspace}:${sessionKey}` : workspace, { ...config, workspaceId: workspace });
  const answer = (input: unknown, signal?: AbortSignal) => perform(session, input, { maxOutput, ...given({ signal }) });
  return {
    name: "runtime",
    label: "Runtime",
    description: DESCRIPTION,
    parameters: SCHEMA,
    input_schema: SCHEMA,
    async execute(_toolCallId, params, signal) {
      const details = await answer(params, signal);
      return { content: [{ type: "text", text: JSON.stringify(details) }], details };
    },
    async call(input, signal) {
      return { type: "tool_result", content: JSON.stringify(await answer(input, signal)) };
    },
  };
}

/** The tools of an agent that works in a directory: the `runtime` tool. */
export function createOpenClawCodingTools(options: { workspaceDir?: string; sessionKey?: string } & ToolOptions = {}): RuntimeTool[] {
  const { workspaceDir = process.cwd(), sessionKey, ...others } = options;
  return [createRuntimeTool(workspaceDir, sessionKey, others)];
}

interface Limits {
  maxOutput: number;
  signal?: AbortSignal;
}

/** A wrong request changes nothing, and its answer says what to do. */
async function perform(session: () => RuntimeSession, input: unknown, limits: Limits): Promise<RuntimeToolOutput> {
  const request = (typeof input === "object" && input !== null ? input : {}) as Partial<Record<keyof RuntimeToolInput, unknown>>;
  const action = typeof request.action === "string" ? request.action.toLowerCase() : request.action;
  if (!ACTIONS.includes(action as Action)) {
    return failure(`Invalid action: ${String(action)}. Must be one of: ${ACTIONS.join(", ")}`);
  }
  const wrong = complaint(action as Action, request);
  if (wrong) return failure(wrong);
  try {
    return await act(session(), { ...request, action } as RuntimeToolInput, limits);
  } catch (error) {
    return failure(error instanceof Error ? error.message : String(error));
  }
}

function complaint(action: Action, { command, limit, timeout }: Partial<Record<keyof RuntimeToolInput, unknown>>): string | undefined {
  if ((action === "exec" || action === "eval") && (typeof command !== "string" || command === "")) {
    return `command is required for ${action} action`;
  }
  if (limit !== undefined && limit !== null && typeof limit !== "number") return "limit must be a number";
  if (timeout !== undefined && timeout !== null && !(typeof timeout === "number" && timeout >= 0)) {
    return "timeout must be a number of milliseconds";
  }
  return undefined;
}

async function act(session: RuntimeSession, request: RuntimeToolInput, limits: Limits): Promise<RuntimeToolOutput> {
  const { command = "", language, limit, timeout } = request;
  const options = { ...limits, ...(typeof timeout === "number" && { timeout }) };
  switch (request.action) {
    case "exec":
      return { ...(await session.exec({ command, language: language ?? "bash", ...options })) };
    case "eval":
      return { ...(await session.eval(command, language ?? "python", options)) };
    case "state":
      return { success: true, state: await session.state() };
    case "reset":
      await session.reset();
      return { success: true, stdout: "Session reset successfully" };
    case "history":
      return {
        success: true,
        history: session.history(limit ?? 20).map(({ timestamp, command, language, duration, exitCode }) => ({
          timestamp,
          command,
          language,
          duration,
          ...given({ exitCode }),
        })),
      };
  }
}

function failure(error: string): RuntimeToolOutput {
  return { success: false, error };
}

/** The tool of the current directory. */
export const runtimeTool: RuntimeTool = createRuntimeTool("default");

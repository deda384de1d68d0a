/** The shapes of OpenClaw's runtime, and what is added to them. */
import type { Client } from "../client.js";
import type { SandboxPolicy } from "../policy.js";
import type { EndedJob } from "../result.js";

export type RuntimeType = "bash" | "python" | "node";

export const RUNTIMES: readonly RuntimeType[] = ["bash", "python", "node"];

export interface RuntimeCommand {
  command: string;
  /** Default: bash. */
  language?: RuntimeType;
  /** Milliseconds; default: 30000. */
  timeout?: number;
  signal?: AbortSignal;
  /** Bytes of each stream that the answer carries. */
  maxOutput?: number;
}

export interface RuntimeOutput {
  /** Whether it exited 0, raised nothing and was in time. */
  success: boolean;
  stdout: string;
  stderr: string;
  exitCode?: number;
  /** Set whenever it was no success. */
  error?: string;
  /** The value of the last expression; of `eval` in bash what was printed. */
  result?: string;
  /** What became of the interpreter, if it is not the one of before. */
  kernel?: string;
  notes?: readonly string[];
  /** Jobs in the background that have ended within this command, or since the one before. */
  jobsEnded?: readonly EndedJob[];
  /** How much of a stream was left out. */
  truncated?: unknown;
}

export interface RuntimeState {
  env_vars: Record<string, string>;
  functions: string[];
  imports: string[];
  working_dir: string;
  history: RuntimeHistoryEntry[];
}

export interface RuntimeHistoryEntry {
  /** Milliseconds since 1970. */
  timestamp: number;
  command: string;
  language: RuntimeType;
  stdout: string;
  stderr: string;
  exitCode?: number;
  /** Milliseconds. */
  duration: number;
}

export interface SessionConfig {
  /** A name, or the directory of a workspace. */
  workspaceId: string;
  /** Milliseconds without a call after which the session ends; default: 30 minutes. */
  timeoutMs?: number;
  /** Default: 100. */
  maxHistorySize?: number;
  /** Where commands begin. Default: `workspaceId` if that is a directory, else the current one. */
  workspaceDir?: string;
  /** Variables of the session, besides the few that every session has. */
  env?: Record<string, string>;
  sandbox?: SandboxPolicy;
  client?: Client;
}

/** A live shell, alone. */
import { CommandError, CommandTimeoutError, InvalidRequestError } from "../errors.js";
import type { Result } from "../result.js";
import { Live, directoryOf, startOptions } from "./live.js";
import type { SessionConfig } from "./types.js";

export interface ShellSessionConfig extends SessionConfig {
  /** By name or path; default: bash. */
  shell?: string;
}

/** What a shell or Python session answers. */
export interface ExecuteOutput {
  success: boolean;
  stdout: string;
  stderr: string;
  exitCode: number;
  error?: string;
}

const TIMEOUT_MS = 30_000;

export class ShellSession {
  private readonly live: Live;
  private env: Record<string, string> = callers();
  private workdir: string;

  constructor(config: ShellSessionConfig) {
    this.live = new Live({ ...startOptions(config), ...(config.shell !== undefined && { shell: config.shell }) });
    this.workdir = directoryOf(config) ?? process.cwd();
  }

  async execute(command: string, timeout = TIMEOUT_MS): Promise<ExecuteOutput> {
    return executed(await this.perform(command, timeout), timeout);
  }

  /** The shell's environment, as of the last command. */
  getEnv(): Record<string, string> {
    return { ...this.env };
  }

  /** The shell's directory, as of the last command. */
  getWorkdir(): string {
    return this.workdir;
  }

  async setEnv(key: string, value: string): Promise<void> {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) {
      throw new InvalidRequestError(`Invalid variable name: ${key}`, { code: "invalid_argument", hint: "names have letters, digits and _, and no digit first" });
    }
    succeeded(await this.perform(`export ${key}=${quoted(value)}`), `Failed to set ${key}`);
  }

  async changeDir(dir: string): Promise<void> {
    succeeded(await this.perform(`cd -- ${quoted(dir)}`), "Failed to change directory");
  }

  async reset(): Promise<void> {
    await this.live.reset();
    if (this.live.hasStarted) await this.refresh();
  }

  async terminate(): Promise<void> {
    await this.live.end();
  }

  private async perform(command: string, timeout = TIMEOUT_MS): Promise<Result> {
    const session = await this.live.session();
    const result = await session.exec(command, { timeout });
    await this.refresh();
    return result;
  }

  private async refresh(): Promise<void> {
    const session = await this.live.session();
    const state = await session.state();
    // An interpreter that has not started yet has neither.
    this.env = state.envVars ?? callers();
    this.workdir = state.workingDir ?? session.workDir;
  }
}

/** What is told before the first command. */
export function callers(): Record<string, string> {
  return { ...process.env } as Record<string, string>;
}

export function executed(result: Result, timeout: number): ExecuteOutput {
  const { success, stdout, stderr, exitCode } = result;
  const output: ExecuteOutput = { success, stdout, stderr, exitCode };
  if (result.timedOut) output.error = `Command timeout after ${timeout}ms`;
  else if (result.error) output.error = `${result.error.type}: ${result.error.message}`;
  else if (!success) output.error = `exit code ${exitCode}`;
  return output;
}

function succeeded(result: Result, failure: string): void {
  if (result.success) return;
  const kind = result.timedOut ? CommandTimeoutError : CommandError;
  throw new kind(result, `${failure}: ${result.stderr}`);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

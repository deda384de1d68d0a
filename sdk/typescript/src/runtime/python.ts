/** A live Python, alone. */
import { Live, startOptions } from "./live.js";
import { type ExecuteOutput, callers, executed } from "./shell.js";
import type { SessionConfig } from "./types.js";

export interface PythonSessionConfig extends SessionConfig {
  /** By name or path; default: python3. */
  pythonCmd?: string;
}

export class PythonSession {
  private readonly live: Live;
  private imports: string[] = [];
  private env: Record<string, string> = callers();

  constructor(config: PythonSessionConfig) {
    this.live = new Live({ ...startOptions(config), shell: config.pythonCmd ?? "python3" });
  }

  async execute(code: string, timeout = 30_000): Promise<ExecuteOutput> {
    const session = await this.live.session();
    const result = await session.exec(code, { timeout });
    await this.refresh();
    return executed(result, timeout);
  }

  /** Modules that the code has imported, as of the last one that ran. */
  getImports(): string[] {
    return [...this.imports];
  }

  /** Python's environment, as of the last code that ran. */
  getEnv(): Record<string, string> {
    return { ...this.env };
  }

  /** Python's directory. */
  async getWorkdir(): Promise<string> {
    const { workingDir } = await (await this.live.session()).state();
    return workingDir ?? process.cwd();
  }

  async reset(): Promise<void> {
    await this.live.reset();
    this.imports = [];
    this.env = callers();
  }

  async terminate(): Promise<void> {
    await this.live.end();
  }

  private async refresh(): Promise<void> {
    const state = await (await this.live.session()).state();
    this.imports = state.imports ?? [];
    if (state.envVars) this.env = state.envVars;
  }
}

/** A Sessile session that is started when it is first needed. */
import { statSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import { defaultClient } from "../client.js";
import { SessionClosedError } from "../errors.js";
import { Session, type StartOptions } from "../session.js";
import type { SessionConfig } from "./types.js";

export const DEFAULT_TIMEOUT_MS = 30 * 60 * 1000;
export const DEFAULT_HISTORY = 100;

/**
 * How much later than this program the server ends a session that nobody uses: it
 * does so only when the program is gone. By its clock the time begins before a
 * command has reached it.
 */
const GRACE_MS = 60_000;

export class Live {
  private starting: Promise<Session> | undefined;
  private isOver = false;

  constructor(private readonly options: StartOptions) {}

  /** One session, however many ask for it at once; one that could not be started is tried again. */
  async session(): Promise<Session> {
    if (this.isOver) throw terminated();
    this.starting ??= Session.start(this.options).catch((error: unknown) => {
      this.starting = undefined;
      throw error;
    });
    return this.starting;
  }

  /** Whether it was ever needed. */
  get hasStarted(): boolean {
    return this.starting !== undefined;
  }

  async reset(): Promise<void> {
    if (this.hasStarted) await (await this.session()).reset();
  }

  async end(): Promise<void> {
    if (this.isOver) return;
    const { starting } = this;
    this.isOver = true;
    const session = await starting?.catch(() => undefined);
    await session?.end();
  }
}

export function terminated(): SessionClosedError {
  const hint = "make a new one: getOrCreateSession() of the manager, or the constructor";
  // OpenClaw's words, which programs compare.
  return new SessionClosedError("Session has been terminated", { code: "session_ended", hint, isVerbatim: true });
}

/**
 * The directory of a workspace: one that is named, or the current one. Of a
 * remote server only the name is known, and without one it has its own.
 */
export function directoryOf(config: SessionConfig): string | undefined {
  const { workspaceId, workspaceDir, client = defaultClient() } = config;
  if (!client.isLocal) return workspaceDir ?? (isAbsolute(workspaceId) ? workspaceId : undefined);
  if (workspaceDir !== undefined) return resolve(workspaceDir);
  return isAbsolute(workspaceId) && isDirectory(workspaceId) ? workspaceId : process.cwd();
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

export function startOptions(config: SessionConfig): StartOptions {
  const { env, sandbox, client, timeoutMs, maxHistorySize } = config;
  const workspace = directoryOf(config);
  return {
    ...(workspace !== undefined && { workspace }),
    idleTimeout: (timeoutMs ?? DEFAULT_TIMEOUT_MS) + GRACE_MS,
    maxHistory: maxHistorySize ?? DEFAULT_HISTORY,
    ...(env && { env }),
    ...(sandbox !== undefined && { sandbox }),
    ...(client && { client }),
  };
}

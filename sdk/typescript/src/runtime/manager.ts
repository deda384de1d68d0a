/** All sessions of a process, by workspace. */
import { EventEmitter } from "node:events";
import { RuntimeSession } from "./session.js";
import type { SessionConfig } from "./types.js";

/** Emits `"terminated"` with the workspace's id and the session that has ended. */
export class RuntimeSessionManager extends EventEmitter {
  private readonly sessions = new Map<string, RuntimeSession>();

  /** The session of a workspace, made if there is none: at once, and the same object each time. */
  getOrCreateSession(workspaceId: string, config: Partial<SessionConfig> = {}): RuntimeSession {
    const there = this.getSession(workspaceId);
    if (there) return there;
    const session = new RuntimeSession({ ...config, workspaceId: config.workspaceId ?? workspaceId });
    session.once("terminated", () => {
      if (this.sessions.get(workspaceId) === session) this.sessions.delete(workspaceId);
      this.emit("terminated", workspaceId, session);
    });
    this.sessions.set(workspaceId, session);
    return session;
  }

  getSession(workspaceId: string): RuntimeSession | null {
    return this.sessions.get(workspaceId) ?? null;
  }

  async terminateSession(workspaceId: string): Promise<void> {
    await this.sessions.get(workspaceId)?.terminate();
  }

  /** Ends all of them; the first error is told when all were tried. */
  async terminateAll(): Promise<void> {
    const ends = await Promise.allSettled([...this.sessions.values()].map((session) => session.terminate()));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  getActiveSessions(): Map<string, RuntimeSession> {
    return new Map(this.sessions);
  }

  getSessionCount(): number {
    return this.sessions.size;
  }
}

// One for the process, though this package may be loaded as ESM and as CommonJS.
const MANAGER = Symbol.for("sessile.runtimeManager");

const place = globalThis as { [MANAGER]?: RuntimeSessionManager };

export const globalRuntimeManager: RuntimeSessionManager = (place[MANAGER] ??= new RuntimeSessionManager());

/** An agent goes from one runtime to another. */
import { resolve } from "node:path";
import { Readable } from "node:stream";
import { SessileError } from "../errors.js";
import type { SignalOption } from "../run.js";
import type { Restored } from "../saving.js";
import { type Camel, type Schemas, camel, given } from "../shapes.js";
import type { Incoming } from "../transport.js";
import type { Runtime } from "./runtime.js";

export interface Moved {
  agent: Camel<Schemas["AgentInfo"]>;
  session: Restored;
}

/**
 * Exported there, imported here, and only then given up there: whatever breaks
 * in between, the agent is where it was. What goes through is not written to a
 * disk of this machine.
 */
export async function move(id: string, from: Runtime, to: Runtime, options: SignalOption & { workspace?: string; model?: string }): Promise<Moved> {
  const { signal, workspace, model } = options;
  const path = `/v1/agents/${encodeURIComponent(id)}`;
  const cwd = workspace !== undefined && to.client.isLocal ? resolve(workspace) : workspace;
  let head: Incoming["headers"] = {};
  // Asked for anew with each attempt at the other side.
  const body = () =>
    Readable.from(
      (async function* () {
        const exported = await from.client.bytes({ method: "GET", path: `${path}/export`, lane: "wait", signal });
        head = exported.headers;
        yield* exported;
      })(),
      { objectMode: false },
    );
  const headers = { "content-type": "application/octet-stream" };
  // It is the caller's own agent, wherever it was exported.
  const query = { trust: true, ...given({ cwd, model }) };
  const moved = camel(await to.client.json<Schemas["ImportedAgent"]>({ method: "POST", path: "/v1/agents/import", query, body, headers, signal }));
  const json = given({
    url: to.client.endpoint,
    session_id: moved.agent.sessionId,
    entries: Number(head["sessile-entries"]),
    as_of_run: Number(head["sessile-as-of-run"]),
  });
  try {
    await from.client.json({ method: "POST", path: `${path}/moved`, json, repeatable: "safe", signal });
  } catch (error) {
    // It has gone on meanwhile, and is not to be there twice.
    if (error instanceof SessileError && error.code === "busy") {
      await to.client.json({ method: "DELETE", path: `/v1/sessions/${moved.agent.sessionId}`, repeatable: "safe" });
    }
    throw error;
  }
  return moved;
}

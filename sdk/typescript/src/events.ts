/** The events of a run, and of all runs of a session. */
import { Result } from "./result.js";
import { type Camel, type Schemas, camel } from "./shapes.js";
import type { ServerEvent } from "./sse.js";

/** Something that a run wrote. No character is split between two of these. */
export interface OutputEvent {
  type: "stdout" | "stderr";
  id: string;
  run: number;
  /** As text. */
  data: string;
  /** Byte for byte. */
  bytes: Uint8Array;
  /** Bytes before this that are not kept any more. */
  skipped: number;
}

export interface StartedEvent {
  type: "started";
  id: string;
  run: number;
}

/** The command has answered; something that it started may still write. */
export interface ExitedEvent {
  type: "exited";
  id: string;
  run: number;
  result: Result;
}

/** Nothing can write any more. */
export interface ClosedEvent {
  type: "closed";
  id: string;
  run: number;
}

/** An event of a run; the last is `closed`. */
export type RunEvent = StartedEvent | OutputEvent | ExitedEvent | ClosedEvent;

/** An event of a session: a run that was accepted, what it does, or the session's end. */
export type SessionEvent = { type: string; id: string; run?: number } & Record<string, unknown>;

interface RunWire {
  run: number;
  data?: string;
  encoding?: string;
  skipped?: number;
  result?: Schemas["RunResult"];
}

/** `undefined` for kinds that a later server may have. */
export function runEvent({ id, event, data }: ServerEvent): RunEvent | undefined {
  const wire = JSON.parse(data) as RunWire;
  const { run } = wire;
  switch (event) {
    case "started":
    case "closed":
      return { type: event, id, run };
    case "stdout":
    case "stderr": {
      const bytes = Buffer.from(wire.data ?? "", wire.encoding === "base64" ? "base64" : "utf8");
      const text = wire.encoding === "base64" ? bytes.toString("utf8") : (wire.data ?? "");
      return { type: event, id, run, data: text, bytes, skipped: wire.skipped ?? 0 };
    }
    case "exited":
      return wire.result ? { type: "exited", id, run, result: new Result(wire.result) } : undefined;
    default:
      return undefined;
  }
}

export function isLastOfRun({ event }: { event: string }): boolean {
  return event === "closed";
}

export function sessionEvent({ id, event, data }: ServerEvent): SessionEvent {
  return { ...(camel(JSON.parse(data) as Record<string, unknown>) as Camel<Record<string, unknown>>), type: event, id };
}

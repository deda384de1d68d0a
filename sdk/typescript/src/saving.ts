/** Sessions as files: saved here, and restored from here. */
import { createReadStream, createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Client } from "./client.js";
import { AbortError } from "./errors.js";
import type { SignalOption } from "./run.js";
import { type Camel, type Schemas, camel } from "./shapes.js";

/** A saved session's file, or what is in it. */
export type SaveSource = string | Uint8Array;

export interface Saved {
  path: string;
  bytes: number;
  /** The newest run in it. */
  asOfRun: number;
  /** How many things could not be carried. */
  left: number;
}

export type Restored = Camel<Schemas["Restored"]>;

/** Written beside its place, and put there when it is complete. */
export async function save(
  client: Client,
  session: string,
  path: string,
  options: SignalOption & { files?: boolean; wait?: boolean },
): Promise<Saved> {
  const { signal, files, wait } = options;
  const response = await client.bytes({ method: "GET", path: `${session}/save`, query: { files, wait }, lane: "wait", signal, waits: wait ? 24 * 3_600_000 : 0 });
  const part = `${path}.${process.pid}.part`;
  try {
    await pipeline(response, createWriteStream(part, { mode: 0o600 }), signal ? { signal } : {});
    const { size } = await stat(part);
    await rename(part, path);
    return { path, bytes: size, asOfRun: number(response.headers["sessile-as-of-run"]), left: number(response.headers["sessile-left"]) };
  } catch (error) {
    await rm(part, { force: true });
    throw signal?.aborted ? new AbortError(signal.reason, { reached: true }) : error;
  }
}

export async function restore(
  client: Client,
  source: SaveSource,
  options: SignalOption & { cwd?: string; name?: string; trust?: boolean; durable?: boolean; keep?: boolean },
): Promise<Restored> {
  const { signal, keep = options.name !== undefined || options.durable === true, ...others } = options;
  const query = { ...others, ends_with_caller: client.isLocal && !keep ? true : undefined };
  if (typeof source === "string") await stat(source);
  const body = () => (typeof source === "string" ? createReadStream(source) : Readable.from([source], { objectMode: false }));
  const headers = { "content-type": "application/octet-stream" };
  return camel(await client.json<Schemas["Restored"]>({ method: "POST", path: "/v1/restore", query, body, headers, signal, lane: "wait" }));
}

function number(header: string | string[] | undefined): number {
  return Number(header ?? 0);
}

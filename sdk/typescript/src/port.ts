/** A port of a session, reached through the server. */
import type { Call, Client } from "./client.js";
import { fromAnswer } from "./errors.js";
import type { SignalOption } from "./run.js";
import type { Incoming } from "./transport.js";

export interface PortRequest extends SignalOption {
  method?: Call["method"];
  headers?: Record<string, string>;
  body?: string | Uint8Array;
}

/** What the program at the port answered. */
export interface PortAnswer {
  status: number;
  headers: Incoming["headers"];
  text(): string;
  json(): unknown;
  bytes(): Uint8Array;
}

export class Port {
  constructor(
    private readonly client: Client,
    private readonly path: string,
    readonly number: number,
  ) {}

  /** Where it is on the server; callers need the token, and a socket of their own if the server is local. */
  get url(): string {
    return `${this.client.endpoint}${this.path}/`;
  }

  /** An HTTP request to it. Any status is an answer. */
  async fetch(path = "/", request: PortRequest = {}): Promise<PortAnswer> {
    const { method = "GET", headers, body, signal } = request;
    const call: Call = {
      method,
      path: this.path + (path.startsWith("/") ? path : `/${path}`),
      lane: "wait",
      repeatable: "once",
      signal,
    };
    if (headers) call.headers = headers;
    if (body !== undefined) call.body = typeof body === "string" ? Buffer.from(body) : body;
    const { status, headers: answered, bytes } = await this.client.exchange(call);
    // Only what the program says has this header.
    if (answered["sessile-port"] === undefined) throw fromAnswer(status, parse(bytes));
    return {
      status,
      headers: answered,
      bytes: () => bytes,
      text: () => bytes.toString("utf8"),
      json: () => JSON.parse(bytes.toString("utf8")) as unknown,
    };
  }
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}

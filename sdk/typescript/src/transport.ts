/**
 * One request and its answer over node:http: where the server is, connections
 * that are kept, deadlines and aborts. Whether a request is sent again is
 * decided in `retry.ts`.
 */
import * as http from "node:http";
import * as https from "node:https";
import type { Readable } from "node:stream";
import { ConnectionError, TimeoutError } from "./errors.js";
import { connectable } from "./local.js";

/** Where a server is. */
export type Address =
  | { kind: "local"; socket: string }
  | { kind: "unix"; socket: string }
  | { kind: "http"; host: string; port: number; base: string }
  | { kind: "https"; host: string; port: number; base: string };

/** Certificates for `https:`; see Node's `tls.connect`. */
export interface TlsOptions {
  ca?: string | Buffer | (string | Buffer)[];
  cert?: string | Buffer;
  key?: string | Buffer;
  rejectUnauthorized?: boolean;
}

/** A request as it is sent. */
export interface Outgoing {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: string | Uint8Array | Readable | undefined;
  signal?: AbortSignal | undefined;
  /** Milliseconds until the answer must have begun; 0: no limit. */
  deadline: number;
  lane: Lane;
}

/**
 * Which connections a request uses. Runs of unknown length `wait` on some of
 * their own, so that no `control` waits for them. What may not be done twice
 * has a `fresh` one: on one that was kept, nobody could tell whether the server
 * had gone before or after it was asked.
 */
export type Lane = "control" | "wait" | "fresh";

export type Incoming = http.IncomingMessage;

/**
 * How far a request got. `unsent`: nobody was there. `broken`: the server may
 * have begun with what it was asked. `untrusted`: its certificate is not one
 * that we know, or it speaks something else; asking again would not help.
 */
export type Reached = "unsent" | "broken" | "untrusted";

/** A request that got no answer. */
export class Unanswered extends Error {
  constructor(
    readonly reached: Reached,
    override readonly cause: unknown,
  ) {
    super("no answer");
  }
}

/**
 * Idle connections are dropped before the server does it (30 s), so that a
 * request is never sent into a connection that is just being closed.
 */
const IDLE_MS = 15_000;

/** A server takes 1,024 connections unless it was told otherwise. */
const CONNECTIONS: Record<Lane, number> = { wait: 900, control: 50, fresh: 50 };

export class Transport {
  private readonly agents: Record<Lane, http.Agent>;
  private readonly send: typeof http.request;

  private path: string | undefined;

  constructor(
    private where: Address,
    tls: TlsOptions = {},
  ) {
    const address = where;
    this.send = address.kind === "https" ? https.request : http.request;
    const of = (lane: Lane) => agent(address, tls, lane);
    this.agents = { wait: of("wait"), control: of("control"), fresh: of("fresh") };
  }

  get address(): Address {
    return this.where;
  }

  /** Of the same kind, at another place. */
  set address(address: Address) {
    if (this.where.kind === "local" && address.kind === "local" && this.where.socket === address.socket && !this.path?.startsWith("/proc/")) return;
    this.where = address;
    this.path = undefined;
  }

  /** How people know the server. */
  get endpoint(): string {
    const address = this.address;
    switch (address.kind) {
      case "local":
      case "unix":
        return `unix:${address.socket}`;
      case "http":
      case "https":
        return `${address.kind}://${address.host.includes(":") ? `[${address.host}]` : address.host}:${address.port}${address.base}`;
    }
  }

  /** Sends a request; resolves when the answer's head has come. */
  open(outgoing: Outgoing): Promise<Incoming> {
    return new Promise((resolve, reject) => {
      const { signal, deadline, body } = outgoing;
      const isStream = body !== undefined && typeof body !== "string" && !(body instanceof Uint8Array);
      const request = this.send(this.options(outgoing));
      let timer: NodeJS.Timeout | undefined;
      const settle = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
      };
      // Told here and not left to the request's own event, which not every runtime sends.
      const giveUp = (error: Error) => {
        settle();
        reject(error);
        request.destroy();
      };
      const onAbort = () => giveUp(new Unanswered(reached(request, isStream), signal?.reason));
      request.once("response", (response) => {
        settle();
        // The caller listens for the abort from here on.
        resolve(response);
      });
      request.on("error", (error: NodeJS.ErrnoException) => {
        settle();
        reject(new Unanswered(reached(request, isStream, error), error));
      });
      if (signal) signal.addEventListener("abort", onAbort, { once: true });
      if (deadline > 0) timer = setTimeout(() => giveUp(tooLate(deadline)), deadline);
      if (isStream) pipe(body, request);
      else request.end(body);
    });
  }

  close(): void {
    for (const agent of Object.values(this.agents)) agent.destroy();
  }

  private options(outgoing: Outgoing): http.RequestOptions {
    const { method, path, headers, lane } = outgoing;
    const address = this.address;
    const agent = this.agents[lane];
    switch (address.kind) {
      case "local":
      case "unix":
        this.path ??= connectable(address.socket);
        return { method, path, headers, agent, socketPath: this.path };
      case "http":
      case "https":
        return { method, path: address.base + path, headers, agent, host: address.host, port: address.port };
    }
  }
}

/** Deno does not let go of a connection that was used before when its request is given up, and the program would not end. */
const KEEPS = !("Deno" in globalThis);

function agent(address: Address, tls: TlsOptions, lane: Lane): http.Agent {
  const options = { keepAlive: KEEPS && lane !== "fresh", maxSockets: CONNECTIONS[lane], timeout: IDLE_MS };
  return address.kind === "https" ? new https.Agent({ ...options, ...tls }) : new http.Agent(options);
}

/** A stream that fails takes its request with it. */
function pipe(body: Readable, request: http.ClientRequest): void {
  body.once("error", (error) => request.destroy(error));
  request.once("close", () => body.destroy());
  body.pipe(request);
}

/** Errors of a connection that never came to be. */
const UNSENT = new Set(["ECONNREFUSED", "ENOENT", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "EACCES"]);

/** Errors of TLS and of HTTP's grammar. */
const UNTRUSTED = /CERT|SELF_SIGNED|UNABLE_TO_|^ERR_TLS|^ERR_SSL|^EPROTO$|^HPE_/;

function reached(request: http.ClientRequest, isStream: boolean, error?: NodeJS.ErrnoException): Reached {
  if (error?.code !== undefined && UNSENT.has(error.code)) return "unsent";
  if (error?.code !== undefined && UNTRUSTED.test(error.code)) return "untrusted";
  // The other side had closed it before the whole request was written; of a
  // stream it may have had enough to answer.
  if (error?.code === "EPIPE" && !isStream) return "unsent";
  return request.socket && !request.socket.connecting ? "broken" : "unsent";
}

function tooLate(deadline: number): TimeoutError {
  return new TimeoutError(`no answer within ${deadline} ms`, {
    code: "request_timeout",
    hint: "the server may be stopped or overloaded; give `requestTimeout` to wait longer",
  });
}

/** What is told when it was tried for the last time. */
export function gaveUp(error: Unanswered, endpoint: string): ConnectionError {
  const cause = error.cause as NodeJS.ErrnoException;
  const why = cause.code ?? cause.message;
  if (endpoint.startsWith("http:") && why.startsWith("HPE_")) {
    return new ConnectionError(`what is at ${endpoint} does not speak HTTP (${why})`, endpoint, {
      code: "connection_failed",
      hint: "if it speaks TLS, use https:// in its address",
      cause,
    });
  }
  if (error.reached === "untrusted") {
    return new ConnectionError(`${endpoint} is not a server that can be trusted (${why})`, endpoint, {
      code: "connection_failed",
      hint: "check the address; a certificate of your own is given as `tls: { ca }`, or in NODE_EXTRA_CA_CERTS",
      cause,
    });
  }
  if (error.reached === "unsent") {
    return new ConnectionError(`no server answers at ${endpoint} (${why})`, endpoint, {
      code: "connection_failed",
      hint: "start one with `sessile serve`, or check the address",
      cause,
    });
  }
  return new ConnectionError(`the connection to ${endpoint} broke (${why})`, endpoint, {
    code: "connection_lost",
    hint: "what was asked may have been done; look before asking again",
    cause,
  });
}

/** What is told of a stream whose server went away for good. */
export function goneMeanwhile(error: ConnectionError, hint: string): ConnectionError {
  const message = `the server at ${error.endpoint} went away during the stream, and did not come back`;
  return new ConnectionError(message, error.endpoint, { code: "connection_lost", hint, cause: error });
}

/** A whole answer. */
export function collect(response: Incoming, signal?: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const onAbort = () => {
      reject(new Unanswered("broken", signal?.reason));
      response.destroy();
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    const settle = () => signal?.removeEventListener("abort", onAbort);
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.once("end", () => {
      settle();
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
    });
    response.once("error", (error) => {
      settle();
      reject(new Unanswered("broken", error));
    });
    response.once("close", () => {
      settle();
      if (!response.complete) reject(new Unanswered("broken", new Error("the answer was cut off")));
    });
  });
}

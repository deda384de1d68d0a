/**
 * Errors: one class per kind of trouble, each with a `code` that never changes
 * and a `hint` that says what to do. The codes of the server are passed on as
 * they are; those that only a client can have are in {@link ClientCode}.
 */
import { hintFor, says } from "./hints.js";
import type { Result } from "./result.js";

/** Codes of errors that do not come from the server. */
export type ClientCode =
  | "aborted"
  | "binary_not_found"
  | "codebase_not_found"
  | "command_failed"
  | "command_timeout"
  | "connection_failed"
  | "connection_lost"
  | "invalid_argument"
  | "limit"
  | "local_server_failed"
  | "not_running"
  | "request_timeout"
  | "session_closed"
  | "unexpected_answer"
  | "upload_failed";

/** What an error is made of, besides its message. */
export interface ErrorDetails {
  code: string;
  hint?: string;
  status?: number;
  cause?: unknown;
  /** The message is a promise to those who compare it, and stays without the hint. */
  isVerbatim?: boolean;
}

/** Everything that this package throws. */
export class SessileError extends Error {
  /** A stable code for programs. */
  readonly code: string;
  /** What to do. */
  readonly hint: string;
  /** The HTTP status, if a server answered. */
  readonly status: number | undefined;

  constructor(message: string, details: ErrorDetails) {
    const hint = details.hint ?? "";
    super(hint && !details.isVerbatim && !says(message, hint) ? `${message}; ${hint}` : message);
    if (details.cause !== undefined) {
      Object.defineProperty(this, "cause", { value: details.cause, enumerable: false, configurable: true });
    }
    this.name = new.target.name;
    this.code = details.code;
    this.hint = hint;
    this.status = details.status;
  }
}

/** The server could not be reached, or the connection broke for good. */
export class ConnectionError extends SessileError {
  constructor(
    message: string,
    readonly endpoint: string,
    details: ErrorDetails,
  ) {
    super(message, details);
  }
}

/** There is no `sessile` program to start the local server with. */
export class BinaryNotFoundError extends SessileError {}

/** The token is missing, wrong, revoked or expired. */
export class AuthenticationError extends SessileError {}

/** The token may not do this, or the sandbox's policy forbids it. */
export class PermissionDeniedError extends SessileError {}

/** Something in the request is wrong. */
export class InvalidRequestError extends SessileError {}

/** What was asked for does not exist. */
export class NotFoundError extends SessileError {}

/** There is no such session. */
export class SessionNotFoundError extends NotFoundError {}

/** There is no such sandbox, or it was destroyed. */
export class SandboxNotFoundError extends NotFoundError {
  constructor(readonly sandboxId: string) {
    super(`there is no sandbox ${JSON.stringify(sandboxId)}`, { code: "session_not_found", hint: "make one with Sandbox.fromLocal()" });
  }
}

/** The sandbox was not started, or was stopped or destroyed. */
export class SandboxNotRunningError extends SessileError {
  constructor(
    readonly sandboxId: string,
    readonly currentStatus: "pending" | "stopped" | "destroyed",
  ) {
    const hint = currentStatus === "destroyed" ? "make a new one with Sandbox.fromLocal()" : "call start() first";
    super(`the sandbox ${sandboxId || "(without an id yet)"} is not running: it is ${currentStatus}`, { code: "not_running", hint });
  }
}

/** There is no such file. It is a {@link CodebaseError}, too. */
export class FileNotFoundError extends NotFoundError {}

/** Something about a codebase or a file. */
export class CodebaseError extends SessileError {
  static override [Symbol.hasInstance](error: unknown): boolean {
    return Function.prototype[Symbol.hasInstance].call(this, error) || (this === CodebaseError && error instanceof FileNotFoundError);
  }
}

export class CodebaseNotFoundError extends CodebaseError {
  constructor(readonly codebaseId: string) {
    super(`there is no codebase ${JSON.stringify(codebaseId)}`, { code: "codebase_not_found", hint: "make one with client.createCodebase()" });
  }
}

/** A file could not be stored. `cause` says why. */
export class UploadError extends CodebaseError {
  constructor(
    readonly filePath: string,
    readonly codebaseId: string,
    cause: Error,
  ) {
    super(`${filePath} could not be stored in the codebase ${codebaseId}: ${cause.message}`, { code: "upload_failed", cause });
  }
}

/** The session has ended, or this object was closed. */
export class SessionClosedError extends SessileError {}

/** The request contradicts how things are: a name that is taken, a session that is busy. */
export class ConflictError extends SessileError {}

/** A run is going, and what was asked for cannot be done meanwhile. */
export class BusyError extends ConflictError {}

/** The keeper died during the run, and nobody knows how far it got. */
export class RunLostError extends SessileError {}

/** A limit of the server or of a sandbox was reached. A {@link CommandLimitError} is one, too. */
export class LimitError extends SessileError {
  static override [Symbol.hasInstance](error: unknown): boolean {
    return Function.prototype[Symbol.hasInstance].call(this, error) || (this === LimitError && error instanceof CommandLimitError);
  }
}

/** The server cannot do it now. */
export class UnavailableError extends SessileError {}

/** A request took longer than it may. The run, if it was one, goes on. */
export class TimeoutError extends SessileError {}

/**
 * The caller's `AbortSignal` fired. If a run was going it was interrupted, and
 * the session is kept.
 */
export class AbortError extends SessileError {
  /** The run that was interrupted, if it had begun. */
  readonly run: number | undefined;
  /** Whether the server had been reached, and may have begun with what it was asked. */
  readonly reached: boolean;

  constructor(reason: unknown, details: { run?: number | undefined; reached?: boolean } = {}) {
    super("the call was aborted", { code: "aborted", cause: reason });
    // What `fetch` and Node's own functions call it.
    this.name = "AbortError";
    this.run = details.run;
    this.reached = details.reached ?? details.run !== undefined;
  }
}

/** A command that did not succeed; thrown by {@link Result.check}. */
export class CommandError extends SessileError {
  readonly result: Result;

  constructor(result: Result, message: string, code: ClientCode = "command_failed") {
    super(message, { code });
    this.result = result;
  }

  get exitCode(): number {
    return this.result.exitCode;
  }

  get stdout(): string {
    return this.result.stdout;
  }

  get stderr(): string {
    return this.result.stderr;
  }
}

/** A command that was interrupted because its time was over. */
export class CommandTimeoutError extends CommandError {
  constructor(result: Result, message: string) {
    super(result, message, "command_timeout");
  }
}

/** A command that failed and has met a limit of its sandbox: `result.limitsMet` says which. */
export class CommandLimitError extends CommandError {
  constructor(result: Result, message: string) {
    super(result, message, "limit");
  }
}

type Kind = new (message: string, details: ErrorDetails) => SessileError;

const BY_CODE: Record<string, Kind> = {
  unauthorized: AuthenticationError,
  session_not_found: SessionNotFoundError,
  session_ended: SessionClosedError,
  file_not_found: FileNotFoundError,
  run_lost: RunLostError,
  checkpoint_lost: RunLostError,
  busy: BusyError,
  keeper_unavailable: UnavailableError,
};

/** The error for an answer of the server. */
export function fromAnswer(status: number, body: unknown, path = ""): SessileError {
  const { code, message, hint } = detail(body) ?? {
    code: "unexpected_answer",
    message: `the server answered with status ${status}`,
    hint: "check that the address is that of a Sessile server",
  };
  const kind = BY_CODE[code] ?? byStatus(status);
  return new kind(message, { code, hint: hintFor(code, hint, message, path), status });
}

function byStatus(status: number): Kind {
  if (status === 401) return AuthenticationError;
  if (status === 403) return PermissionDeniedError;
  if (status === 404) return NotFoundError;
  if (status === 409) return ConflictError;
  if (status === 429 || status === 413 || status === 507) return LimitError;
  if (status >= 500) return UnavailableError;
  if (status >= 400) return InvalidRequestError;
  return SessileError;
}

function detail(body: unknown): { code: string; message: string; hint: string } | undefined {
  const error = (body as { error?: Record<string, unknown> } | undefined)?.error;
  if (!error || typeof error["code"] !== "string") return undefined;
  return { code: error["code"], message: String(error["message"] ?? ""), hint: String(error["hint"] ?? "") };
}

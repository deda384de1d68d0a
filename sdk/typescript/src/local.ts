/**
 * The user's own server on a Unix socket: where it is, and starting it.
 *
 * Nothing is asked before it is needed: a client connects, and only if nobody
 * answers runs `sessile serve --local --background`, which finds or starts the
 * server under a lock, whoever else does the same at that moment.
 */
import { execFile } from "node:child_process";
import { openSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join } from "node:path";
import { findBinary, foreign, isForeign } from "./binary.js";
import { ConnectionError } from "./errors.js";

/** Starting takes a fraction of a second; a machine under load may need longer. */
const PATIENCE_MS = 30_000;

/** The socket of the user's local server. */
export function localSocket(env: NodeJS.ProcessEnv = process.env): string {
  const given = env["XDG_STATE_HOME"];
  const state = given && isAbsolute(given) ? given : join(env["HOME"] || homedir(), ".local", "state");
  return join(state, "sessile", "local.sock");
}

/** What a socket's address has room for. */
const LONGEST = 107;

/** A path that `connect` takes for a socket: a long one is reached through its directory. */
export function connectable(socket: string): string {
  if (Buffer.byteLength(socket) <= LONGEST) return socket;
  try {
    // Open for as long as the process is: each new connection goes through it.
    return `/proc/self/fd/${openSync(dirname(socket), "r")}/${basename(socket)}`;
  } catch {
    // There is no such directory, and no server in it: whoever connects is told so.
    return "/proc/self/fd/none";
  }
}

/** Finds or starts the local server; its socket. */
export async function startLocal(env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const program = findBinary(env);
  const line = await output(program, ["serve", "--local", "--background"], env);
  try {
    const { socket } = JSON.parse(line) as { socket?: unknown };
    if (typeof socket === "string") return socket;
  } catch {
    // Told below.
  }
  throw failed(program, `it printed ${JSON.stringify(line.slice(0, 200))}`);
}

function output(program: string, args: string[], env: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { env, timeout: PATIENCE_MS }, (error, stdout, stderr) => {
      if (!error) resolve(stdout);
      else if (isForeign(program, error)) reject(foreign(program, error));
      else reject(failed(program, stderr.trim() || error.message, error));
    });
  });
}

function failed(program: string, why: string, cause?: unknown): ConnectionError {
  return new ConnectionError(`the local server could not be started: ${why}`, program, {
    code: "local_server_failed",
    hint: `try \`${program} serve --local\` by hand`,
    cause,
  });
}

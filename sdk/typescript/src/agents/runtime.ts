/** Where agents work: on this machine, or at a server. */
import { Client, type ClientOptions, defaultClient } from "../client.js";

/** What an agent needs of the place where it works. */
export interface Runtime {
  readonly client: Client;
}

/** `true` writes a line about each request to stderr; a function is given it. */
export type Debug = boolean | ((line: string) => void);

/**
 * Agents on this machine. They belong to the user's own server, so that every
 * program of the user finds them again.
 */
export class LocalRuntime implements Runtime {
  readonly client: Client;

  constructor(options: { client?: Client; debug?: Debug; env?: NodeJS.ProcessEnv } = {}) {
    const { client, debug, env } = options;
    this.client = client ?? (debug || env ? new Client(local(debug, env)) : defaultLocal());
  }
}

/** Agents at a Sessile server. */
export class CloudRuntime implements Runtime {
  readonly client: Client;

  constructor(options: Omit<ClientOptions, "debug"> & { debug?: Debug } = {}) {
    const { debug, ...others } = options;
    this.client = new Client({ ...others, ...logging(debug) });
  }
}

/** SESSILE_URL is for programs that do not say where; this one does. */
function local(debug: Debug | undefined, env: NodeJS.ProcessEnv = process.env): ClientOptions {
  const { SESSILE_URL: _url, SESSILE_TOKEN: _token, ...others } = env;
  return { env: others, ...logging(debug) };
}

let shared: Client | undefined;

function defaultLocal(): Client {
  const client = defaultClient();
  if (client.isLocal) return client;
  return (shared ??= new Client(local(undefined)));
}

function logging(debug: Debug | undefined): Pick<ClientOptions, "debug"> {
  if (!debug) return {};
  return { debug: debug === true ? (line) => process.stderr.write(`sessile: ${line}\n`) : debug };
}

// A real server in a directory of its own, with a user's state of its own.
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { sdk } from "./sdk.mjs";

export const binary = process.env.SESSILE_TEST_BIN ?? fileURLToPath(new URL("../../../../target/debug/sessile", import.meta.url));

/** Passes a test over, by name, if this machine cannot enforce a sandbox; in CI that is a failure. */
export function passOver(t, error) {
  if (error.code !== "sandbox_unavailable" || process.env.CI === "true") throw error;
  t.skip(error.message);
}

/** A user of their own: a directory, and an environment that says where their state is. */
class User {
  constructor(folder = "state") {
    this.root = mkdtempSync(join(tmpdir(), "sessile-ts-"));
    this.env = { ...process.env, XDG_STATE_HOME: join(this.root, folder), XDG_DATA_HOME: join(this.root, "data"), SESSILE_BIN: binary };
    for (const name of ["SESSILE_URL", "SESSILE_TOKEN", "SESSILE_SESSIONS_DIR"]) delete this.env[name];
    this.clients = [];
  }

  close() {
    for (const client of this.clients) client.close();
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** The user's own server, started by whoever needs it. */
export class Local extends User {
  client(options = {}) {
    const client = new sdk.Client({ env: this.env, ...options });
    this.clients.push(client);
    return client;
  }

  /** The server's process; it is started if it is not there. */
  async pid() {
    const { stdout } = await promisify(execFile)(binary, ["serve", "--local", "--background"], { env: this.env });
    return JSON.parse(stdout).pid;
  }

  /** As a crash would; which process it was. */
  async kill() {
    const pid = await this.pid();
    process.kill(pid, "SIGKILL");
    await gone(pid);
    return pid;
  }

  async stop() {
    await this.client().json({ method: "DELETE", path: "/v1/sessions", waits: 60_000 });
    const pid = await this.pid();
    process.kill(pid, "SIGTERM");
    await gone(pid);
    this.close();
  }
}

/** The local servers that run with this user's state, without what they have forked. */
export function servers({ XDG_STATE_HOME: state }) {
  const parents = new Map();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const [words, variables] = ["cmdline", "environ"].map((name) => readFileSync(`/proc/${pid}/${name}`, "utf8").split("\0"));
      const isServer = words.includes("--local") && !words.includes("--background");
      const [, parent] = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ");
      if (isServer && variables.includes(`XDG_STATE_HOME=${state}`)) parents.set(pid, parent);
    } catch {
      // It has gone meanwhile, or is somebody else's.
    }
  }
  return [...parents].filter(([, parent]) => !parents.has(parent)).map(([pid]) => Number(pid));
}

/** Somebody else's child can only be looked at. A dead one has no thread left that could have its socket open. */
export async function gone(pid) {
  const isGone = () => {
    try {
      return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8")) && readdirSync(`/proc/${pid}/task`).length <= 1;
    } catch {
      return true;
    }
  };
  while (!isGone()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** A certificate for this machine, and its key. */
export function certificate(folder) {
  const [key, cert] = ["key.pem", "cert.pem"].map((name) => join(folder, name));
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", ...subject, "-keyout", key, "-out", cert], { stdio: "ignore" });
  return { key, cert };
}

export class Server extends User {
  port = 0;

  /** `prepare` is given its directory first, and may answer with further arguments. */
  static async start(args = [], prepare = () => {}, env = {}) {
    const server = new Server();
    Object.assign(server.env, env);
    server.args = [...args, ...(prepare(server.root) ?? [])];
    await server.run();
    return server;
  }

  async run() {
    const args = ["serve", "--listen", `127.0.0.1:${this.port}`, "--log-level", "error", ...this.args];
    this.process = spawn(binary, args, { cwd: this.root, env: this.env, stdio: ["ignore", "pipe", "inherit"] });
    for await (const line of createInterface(this.process.stdout)) {
      const url = /is at (https?:\/\/\S+)/.exec(line);
      if (url) this.url = url[1];
      const token = /token in (.*)\.$/.exec(line);
      if (token) this.token = readFileSync(token[1], "utf8").trim();
      if (line.includes('"args"')) break;
    }
    this.process.stdout.resume();
    this.port = Number(new URL(this.url).port);
  }

  client(options = {}) {
    const client = new sdk.Client({ url: this.url, token: this.token, env: this.env, ...options });
    this.clients.push(client);
    return client;
  }

  /** As a crash would. */
  async kill() {
    const gone = once(this.process, "exit");
    this.process.kill("SIGKILL");
    await gone;
  }

  async stop(options = {}) {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const client = this.client(options);
      await client.json({ method: "DELETE", path: "/v1/sessions", waits: 60_000 });
      const gone = once(this.process, "exit");
      this.process.kill("SIGTERM");
      await gone;
    }
    this.close();
  }
}

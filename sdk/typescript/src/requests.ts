/** Options of sessions and runs, as the API takes them. */
import { resolve } from "node:path";
import { wirePolicy } from "./policy.js";
import { time } from "./run.js";
import type { BackgroundOptions, StartOptions } from "./session.js";
import { type Schemas, given, span } from "./shapes.js";

/** Names that the API knows; their values are the server's to check. */
type Fields<T> = { [K in keyof T]?: unknown };

export function startRequest(options: StartOptions, isLocal: boolean): object {
  const { language, shell, workspace, cwd, env, name, idleTimeout, commandTimeout, maxHistory, outputLimit, auto, durable, from, sandbox } = options;
  const keep = options.keep ?? (name !== undefined || durable === true);
  const place = isLocal ? resolve(workspace ?? ".") : workspace;
  return given({
    shell: shell ?? (language === "python" ? "python3" : language),
    workspace: place,
    cwd,
    env: environment(env, isLocal && sandbox === undefined),
    name,
    idle_timeout: idleTimeout === undefined ? undefined : span(idleTimeout),
    command_timeout: commandTimeout === undefined ? undefined : span(commandTimeout),
    max_history: maxHistory,
    limits: outputLimit === undefined ? undefined : { output: outputLimit },
    auto,
    durable,
    from,
    ends_with_caller: isLocal && !keep ? true : undefined,
    sandbox: sandbox === undefined ? undefined : wirePolicy(sandbox),
  } satisfies Fields<Schemas["StartSession"]> & { sandbox: unknown; ends_with_caller: unknown });
}

/**
 * The local server may have been started by another program, with another PATH.
 * A session should find the programs that its caller finds.
 */
export function environment(env: Record<string, string> | undefined, isCallers: boolean): Record<string, string> | undefined {
  const path = process.env["PATH"];
  return isCallers && path ? { PATH: path, ...env } : env;
}

export function execRequest(command: string, options: BackgroundOptions): object {
  const { language, timeout, noOutputTimeout, stdin, env, maxOutput, interactive, terminal } = options;
  if (timeout !== undefined) time(timeout);
  return given({
    command,
    language,
    timeout: timeout === undefined ? undefined : span(timeout),
    no_output_timeout: noOutputTimeout === undefined ? undefined : span(noOutputTimeout),
    stdin,
    env,
    max_output: maxOutput,
    interactive,
    terminal,
  } satisfies Fields<Schemas["ExecRequest"]>);
}

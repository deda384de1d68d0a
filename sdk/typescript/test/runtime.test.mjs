// The `runtime` tool as OpenClaw's agents and programs know it.
import assert from "node:assert/strict";
import { mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { sdk } from "./support/sdk.mjs";
import { Server } from "./support/server.mjs";

const { CommandError, InvalidRequestError, createOpenClawCodingTools, createRuntimeTool, globalRuntimeManager, PythonSession, RuntimeSession, Session, SessionClosedError, ShellSession } = sdk;
let server, client, root;

before(async () => {
  server = await Server.start();
  client = server.client();
  root = realpathSync(server.root);
});
afterEach(() => globalRuntimeManager.terminateAll());
after(() => server.stop());

const tool = (workspace = "test-workspace", key = undefined) => createRuntimeTool(workspace, key, { client });
const call = async (of, input) => JSON.parse((await of.call(input)).content);

test("the tool has a name, a description, a schema, and execute()", async () => {
  const runtime = tool();
  assert.equal(runtime.name, "runtime");
  assert.match(runtime.description, /Session-scoped runtime/);
  assert.equal(runtime.parameters, runtime.input_schema);
  assert.deepEqual(runtime.parameters.properties.action.enum, ["exec", "eval", "state", "reset", "history"]);
  const { content, details } = await runtime.execute("call_1", { action: "exec", command: "echo 'test output'" });
  assert.deepEqual(JSON.parse(content[0].text), details);
  assert.deepEqual([content[0].type, details.success, details.stdout, details.exitCode], ["text", true, "test output\n", 0]);
});

test("state persists, and follows cd, export and import", async () => {
  const runtime = tool();
  await call(runtime, { action: "exec", command: "VAR='persistent'; export COLOUR=blue; cd /tmp; greet() { echo hi; }" });
  assert.equal((await call(runtime, { action: "exec", command: "echo $VAR; greet" })).stdout, "persistent\nhi\n");
  await call(runtime, { action: "exec", language: "python", command: "import json, math as m\nx = 42" });
  assert.equal((await call(runtime, { action: "eval", command: "x + 1" })).result, "43");
  assert.equal((await call(runtime, { action: "eval", command: "x = 10; print(x * 2)", language: "python" })).stdout, "20\n");
  assert.equal((await call(runtime, { action: "eval", command: "[1, 2].length", language: "node" })).result, "2");
  const { success, state } = await call(runtime, { action: "state" });
  assert.ok(success && state.functions.includes("greet") && state.imports.includes("json"));
  assert.deepEqual([state.working_dir, state.env_vars.COLOUR, state.history.length], ["/tmp", "blue", 6]);
});

test("jobs that have ended are named", async () => {
  const { jobsEnded } = await call(tool(), { action: "exec", command: "(exit 3) & while kill -0 $! 2>/dev/null; do :; done" });
  assert.deepEqual(jobsEnded.map(({ command, exitCode }) => [command, exitCode]), [["(exit 3)", 3]]);
});

test("the value of a shell's code is what it printed", async () => {
  const runtime = tool();
  assert.equal((await call(runtime, { action: "eval", command: "x=41; echo $((x + 1))", language: "bash" })).result, "42");
  assert.equal((await call(runtime, { action: "eval", command: "true", language: "bash" })).result, "");
  assert.equal((await call(runtime, { action: "eval", command: "x = 1" })).result, undefined);
  const session = await Session.start({ client });
  const value = await session.eval("printf 'a\\nb\\n\\n'", { language: "bash" });
  assert.deepEqual([value.result, value.stdout, value.check().exitCode], ["a\nb", "a\nb\n\n", 0]);
  assert.equal((await session.exec("echo x")).result, undefined);
  await session.end();
});

test("what fails is no success, and no marker leaks", async () => {
  const runtime = tool();
  const unknown = await call(runtime, { action: "exec", command: "nonexistent_command_xyz" });
  assert.deepEqual([unknown.success, unknown.exitCode, unknown.error], [false, 127, "exit code 127"]);
  assert.match(unknown.stderr, /command not found/);
  const raised = await call(runtime, { action: "exec", language: "python", command: "1/0" });
  assert.deepEqual([raised.success, raised.error], [false, "ZeroDivisionError: division by zero"]);
  const syntax = await call(runtime, { action: "exec", command: "if" });
  assert.equal(syntax.success, false);
  assert.equal((await call(runtime, { action: "exec", command: "printf no-newline" })).stdout, "no-newline");
  assert.equal((await call(runtime, { action: "exec", command: "exit 3" })).exitCode, 3);
  assert.deepEqual(await call(runtime, { action: "exec", command: "true" }), { success: true, stdout: "", stderr: "", exitCode: 0 });
});

test("messages are as they are there", async () => {
  const runtime = tool();
  const error = async (input) => {
    const answer = await call(runtime, input);
    assert.equal(answer.success, false);
    return answer.error;
  };
  assert.equal(await error({ action: "x" }), "Invalid action: x. Must be one of: exec, eval, state, reset, history");
  assert.equal(await error({ action: "exec" }), "command is required for exec action");
  assert.equal(await error({ action: "eval", command: "" }), "command is required for eval action");
  assert.equal(await error({ action: "eval", command: "1", language: "ruby" }), "eval() only supports bash, python, node; got ruby");
  assert.equal(await error({ action: "exec", command: "sleep 100", timeout: 150 }), "Command timeout after 150ms");
  assert.equal(await error(null), "Invalid action: undefined. Must be one of: exec, eval, state, reset, history");
  assert.deepEqual(await call(runtime, { action: "reset" }), { success: true, stdout: "Session reset successfully" });
  assert.equal((await call(runtime, { action: "EXEC", command: "echo [$VAR]" })).stdout, "[]\n");
});

test("history has what was run, and reset empties it", async () => {
  const runtime = tool();
  for (const name of ["cmd1", "cmd2", "cmd3"]) await call(runtime, { action: "exec", command: `echo ${name}` });
  const { history } = await call(runtime, { action: "history", limit: 2 });
  assert.deepEqual(history.map(({ command, language }) => [command, language]), [["echo cmd2", "bash"], ["echo cmd3", "bash"]]);
  assert.ok(history.every(({ timestamp, duration }) => Date.now() - timestamp < 60_000 && duration >= 0));
  await call(runtime, { action: "reset" });
  assert.deepEqual((await call(runtime, { action: "history" })).history, []);
});

test("workspaces and keys have sessions of their own; a directory is where commands begin", async () => {
  const place = join(root, "project");
  mkdirSync(place);
  const [runtime] = createOpenClawCodingTools({ workspaceDir: place, sessionKey: "one", client });
  const [other] = createOpenClawCodingTools({ workspaceDir: place, sessionKey: "two", client });
  assert.equal((await call(runtime, { action: "exec", command: "pwd; who=first" })).stdout, `${place}\n`);
  assert.equal((await call(other, { action: "exec", command: "echo [$who]" })).stdout, "[]\n");
  assert.equal((await call(createRuntimeTool(place, "one", { client }), { action: "exec", command: "echo $who" })).stdout, "first\n");
});

test("a session is there at once, and is the same object each time", async () => {
  const session = globalRuntimeManager.getOrCreateSession("workspace-1", { client });
  assert.ok(session instanceof RuntimeSession);
  assert.equal(globalRuntimeManager.getOrCreateSession("workspace-1"), session);
  assert.equal(globalRuntimeManager.getSession("workspace-1"), session);
  assert.notEqual(globalRuntimeManager.getOrCreateSession("workspace-2", { client }), session);
  assert.equal(globalRuntimeManager.getSession("workspace-3"), null);
  assert.deepEqual([globalRuntimeManager.getSessionCount(), globalRuntimeManager.getActiveSessions().get("workspace-1")], [2, session]);
  // Many at once have one shell.
  const answers = await Promise.all(Array.from({ length: 20 }, () => session.exec({ command: "echo $BASHPID" })));
  assert.equal(new Set(answers.map(({ stdout }) => stdout)).size, 1);
  await globalRuntimeManager.terminateAll();
  assert.equal(globalRuntimeManager.getSessionCount(), 0);
});

test("a session that was terminated says so, and the manager tells", async () => {
  const told = [];
  const listener = (id, session) => told.push([id, session]);
  globalRuntimeManager.on("terminated", listener);
  const session = globalRuntimeManager.getOrCreateSession("ends", { client });
  const own = [];
  session.on("terminated", () => own.push("terminated"));
  await session.exec({ command: "x=1" });
  const before = session.getLastActivityTime();
  assert.ok(Date.now() - before < 60_000);
  await globalRuntimeManager.terminateSession("ends");
  globalRuntimeManager.off("terminated", listener);
  assert.deepEqual([told, own], [[["ends", session]], ["terminated"]]);
  await assert.rejects(session.exec({ command: "ls" }), (error) => error instanceof SessionClosedError && error.message === "Session has been terminated" && /getOrCreateSession/.test(error.hint));
  await assert.rejects(session.state(), { message: "Session has been terminated" });
  await assert.rejects(session.reset(), { message: "Session has been terminated" });
  const next = globalRuntimeManager.getOrCreateSession("ends", { client });
  assert.notEqual(next, session);
  assert.equal((await next.exec({ command: "echo [$x]" })).stdout, "[]\n");
});

test("a session that nobody uses ends after its time, one that works does not", async () => {
  const session = globalRuntimeManager.getOrCreateSession("idle", { client, timeoutMs: 300 });
  assert.equal((await session.exec({ command: "sleep 0.6; echo done" })).stdout, "done\n");
  await new Promise((resolve) => session.once("terminated", resolve));
  assert.ok(Date.now() - session.getLastActivityTime() >= 290);
  assert.equal(globalRuntimeManager.getSession("idle"), null);
});

test("a session that was ended elsewhere is noticed", async () => {
  const session = globalRuntimeManager.getOrCreateSession("elsewhere", { client });
  const { stdout } = await session.exec({ command: "printf %s $SESSILE_SESSION_ID" });
  await (await Session.attach(stdout, { client })).end();
  await assert.rejects(session.exec({ command: "ls" }), { message: "Session has been terminated" });
  assert.equal(globalRuntimeManager.getSession("elsewhere"), null);
});

test("the history is bounded, and an abort interrupts", async () => {
  const session = new RuntimeSession({ workspaceId: "bounded", maxHistorySize: 3, client });
  for (let i = 1; i <= 5; i++) await session.exec({ command: `echo ${i}` });
  assert.deepEqual(session.getHistory(10).map(({ stdout }) => stdout), ["3\n", "4\n", "5\n"]);
  assert.deepEqual(session.history(1).map(({ command, exitCode }) => [command, exitCode]), [["echo 5", 0]]);
  await assert.rejects(session.exec({ command: "sleep 100", timeout: 0, signal: AbortSignal.timeout(50) }), { name: "AbortError" });
  assert.equal((await session.exec({ command: "echo on" })).stdout, "on\n");
  await session.terminate();
});

test("a ShellSession follows its shell", async () => {
  const shell = new ShellSession({ workspaceId: "shell", client });
  await shell.setEnv("QUOTED", "it's \"$HOME\" `x`");
  assert.equal((await shell.execute("printf %s \"$QUOTED\"")).stdout, "it's \"$HOME\" `x`");
  assert.equal(shell.getEnv().QUOTED, "it's \"$HOME\" `x`");
  await shell.changeDir("/usr");
  assert.equal(shell.getWorkdir(), "/usr");
  await shell.execute("cd /tmp; export LATER=1");
  assert.deepEqual([shell.getWorkdir(), shell.getEnv().LATER], ["/tmp", "1"]);
  await assert.rejects(shell.changeDir("/nowhere"), (error) => error instanceof CommandError && error.exitCode === 1 && /^Failed to change directory: .*No such file/.test(error.message));
  await assert.rejects(shell.setEnv("A B", "x"), (error) => error instanceof InvalidRequestError && /^Invalid variable name: A B/.test(error.message));
  await shell.execute("readonly FIXED=1");
  await assert.rejects(shell.setEnv("FIXED", "2"), (error) => error instanceof CommandError && /^Failed to set FIXED: /.test(error.message));
  assert.equal((await shell.execute("sleep 100", 100)).error, "Command timeout after 100ms");
  await shell.reset();
  assert.equal(shell.getEnv().LATER, undefined);
  assert.equal(shell.getWorkdir(), root);
  await shell.terminate();
  await assert.rejects(shell.execute("ls"), { message: "Session has been terminated" });
});

test("a PythonSession knows its imports", async () => {
  const python = new PythonSession({ workspaceId: "python", client });
  const { success, stdout } = await python.execute("import os, math\nfrom json import dumps\nos.chdir('/usr'); os.environ['P'] = '1'\nprint(dumps([1]))");
  assert.deepEqual([success, stdout], [true, "[1]\n"]);
  assert.ok(python.getImports().includes("math"));
  assert.deepEqual([await python.getWorkdir(), python.getEnv().P], ["/usr", "1"]);
  await python.reset();
  assert.deepEqual(python.getImports(), []);
  await python.terminate();
});

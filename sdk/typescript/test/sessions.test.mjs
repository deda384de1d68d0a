import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { join } from "node:path";
import { sdk } from "./support/sdk.mjs";
import { Server } from "./support/server.mjs";

const { CommandError, CommandTimeoutError, Session } = sdk;
let server, client;

before(async () => {
  server = await Server.start();
  client = server.client();
});
after(() => server.stop());

const start = (options = {}) => Session.start({ client, ...options });

test("a session remembers, in three languages", async () => {
  const session = await start({ env: { STAGE: "test" } });
  await session.exec("cd /tmp; x=41");
  assert.equal((await session.exec("pwd; echo $((x+1)) $STAGE")).stdout, "/tmp\n42 test\n");
  await session.python("import math\nradius = 2");
  const area = await session.eval("round(math.pi * radius**2, 2)");
  assert.deepEqual([area.result, area.language, area.success], ["12.57", "python", true]);
  await session.node("const list = [3, 1, 2]");
  assert.equal((await session.eval("list.sort()", { language: "node" })).result, "[ 1, 2, 3 ]");
  await session.end();
});

test("a result tells what happened, and check() throws what went wrong", async () => {
  const session = await start();
  const failed = await session.exec("echo out; echo err >&2; (exit 3)");
  assert.deepEqual([failed.stdout, failed.stderr, failed.exitCode, failed.success, failed.kernel], ["out\n", "err\n", 3, false, "kept"]);
  assert.throws(() => failed.check(), (error) => error instanceof CommandError && error.code === "command_failed" && error.exitCode === 3 && /exit code 3: err/.test(error.message));
  const raised = await session.python("1/0");
  assert.equal(raised.error.type, "ZeroDivisionError");
  assert.throws(() => raised.check(), /ZeroDivisionError: division by zero/);
  const slow = await session.exec("echo begun; sleep 100", { timeout: 2000 });
  assert.deepEqual([slow.stdout, slow.timedOut, slow.success], ["begun\n", true, false]);
  assert.throws(() => slow.check(), CommandTimeoutError);
  assert.equal(`${(await session.exec("echo '  two'; echo lines; echo")).check()}`, "  two\nlines");
  await session.end();
});

test("results name the jobs that have ended", async () => {
  const session = await start();
  const command = "(exit 3) & while kill -0 $! 2>/dev/null; do :; done";
  const results = [await session.exec(command), await (await session.background(command)).wait(), await session.eval(command, { language: "bash" })];
  for await (const event of session.stream(command)) if (event.type === "exited") results.push(event.result);
  assert.equal(results.length, 4);
  for (const { jobsEnded, run } of results) {
    assert.deepEqual(jobsEnded, [{ pid: jobsEnded[0].pid, run, command: "(exit 3)", exitCode: 3 }]);
  }
  assert.deepEqual((await session.exec("echo")).jobsEnded, []);
  await session.end();
});

test("bytes come as they are, input and variables are for one run", async () => {
  const session = await start();
  const raw = await session.exec("printf '\\377\\000a'");
  assert.deepEqual([...raw.stdoutBytes], [255, 0, 97]);
  const sorted = await session.exec("sort; echo $WHO", { stdin: "b\nä\na\n", env: { WHO: "me" } });
  assert.equal(sorted.stdout.normalize(), "a\nb\nä\nme\n");
  assert.equal((await session.exec("echo [$WHO]")).stdout, "[]\n");
  const long = await session.exec("seq 1 100000", { maxOutput: 1000 });
  assert.ok(long.stdout.length < 1100 && long.truncated.stdout.droppedBytes > 500_000);
  await session.end();
});

test("a run in the background is fed, waited for, read and signalled", async () => {
  const session = await start();
  const run = await session.background("read line; echo got $line; cat", { interactive: true });
  assert.equal(await run.wait({ timeout: 50 }), undefined);
  await run.input("one\n");
  let output = await run.output({ wait: "60s" });
  assert.equal(output.stdout, "got one\n");
  await run.input(Buffer.from("two\n"), { eof: true });
  const { stdout, exitCode } = await run.wait();
  assert.deepEqual([stdout, exitCode], ["got one\ntwo\n", 0]);
  // Its end and that of its output are two events.
  let rest = "";
  for (; output.phase !== "closed"; rest += output.stdout) output = await run.output({ cursor: output.cursor, wait: "60s" });
  assert.equal(rest, "two\n");

  const sleeping = await session.background("sleep 1000");
  assert.equal(await sleeping.result(), undefined);
  for (let sent = 0; sent === 0; ) sent = await sleeping.signal("SIGTERM");
  assert.equal((await sleeping.wait()).exitCode, 143);
  const again = await session.background("sleep 1000");
  while (!(await again.interrupt()));
  assert.equal((await again.wait()).interrupted, true);
  await session.end();
});

test("a terminal is typed on and looked at", async () => {
  const session = await start();
  const run = await session.background("python3 -q", { terminal: { cols: 60, rows: 10 } });
  await run.screen({ waitFor: />>> $/, wait: "60s" });
  const screen = await run.keys("print(6 * 7)<Enter>", { waitFor: /^42\n>>> $/, wait: "60s" });
  assert.equal(screen.wait, "matched");
  assert.match(screen.text, />>> print\(6 \* 7\)\n42/);
  assert.deepEqual(screen.size, { cols: 60, rows: 10 });
  assert.equal(Buffer.from(await run.picture("png")).subarray(1, 4).toString(), "PNG");
  await run.resize(80, 24);
  assert.deepEqual((await run.screen()).size, { cols: 80, rows: 24 });
  await run.keys("exit()<Enter>", { waitFor: "never" });
  assert.equal((await run.wait()).exitCode, 0);
  await session.end();
});

test("state, history, runs, jobs and metadata are told", async () => {
  const session = await start({ name: "told", idleTimeout: "5m", commandTimeout: 20_000, maxHistory: 7 });
  await session.exec("export COLOUR=blue; greet() { echo hi; }; cd /");
  await session.exec("sleep 1000 & :");
  const state = await session.state();
  assert.deepEqual([state.workingDir, state.envVars.COLOUR, state.functions], ["/", "blue", ["greet"]]);
  assert.deepEqual((await session.history({ limit: 1 })).map((entry) => [entry.run, entry.command, entry.exitCode]), [[2, "sleep 1000 & :", 0]]);
  assert.equal((await session.runs()).length, 2);
  const [job] = await session.jobs();
  assert.deepEqual([job.run, job.state, job.command], [2, "running", "sleep 1000"]);
  assert.equal(await session.signalJob(job.pid), 1);
  const info = await session.info();
  assert.deepEqual([info.name, info.idleTimeoutMs, info.commandTimeoutMs, info.maxHistory], ["told", 300_000, 20_000, 7]);
  const found = await Session.attach("told", { client });
  assert.equal(found.id, session.id);
  const listed = [];
  for await (const row of client.sessions({ status: "active" })) listed.push(row.sessionId);
  assert.ok(listed.includes(session.id));
  await session.rename("another");
  assert.equal((await session.info()).name, "another");
  await session.reset();
  assert.deepEqual(await session.history(), []);
  await session.end();
});

test("forks go their own way, and a session goes back", async () => {
  const session = await start({ language: "python", auto: 5 });
  await session.exec("x = 1");
  const [one, two] = await session.fork({ count: 2 });
  await one.exec("x = 2");
  await session.checkpoint("here");
  await session.exec("x = 3");
  assert.deepEqual((await session.rewind("here")).undone, [2]);
  assert.deepEqual([(await session.eval("x")).result, (await one.eval("x")).result, (await two.eval("x")).result], ["1", "2", "1"]);
  await session.exec("x = 4");
  await session.undo();
  assert.equal((await session.eval("x")).result, "1");
  assert.ok((await session.checkpoints()).some(({ name }) => name === "here"));
  assert.deepEqual(await session.dropCheckpoint("here"), ["here"]);
  const single = await session.fork();
  assert.equal((await single.eval("x")).result, "1");
  await Promise.all([session, one, two, single].map((each) => each.end()));
});

test("a session is saved to a file and restored from it", async () => {
  const session = await start({ language: "python" });
  await session.exec("kept = [1, 2]; import socket; s = socket.socket()");
  const path = join(server.root, "work.sessile");
  const saved = await session.save(path);
  assert.deepEqual([saved.asOfRun, saved.left, saved.path], [1, 1, path]);
  await session.end();
  const again = await Session.restore(path, { client, name: "again" });
  assert.equal((await again.eval("kept")).result, "[1, 2]");
  assert.deepEqual(again.restored.left.map(({ name }) => name), ["s"]);
  await again.end();
});

test("a session ends where its block ends, and only once", async () => {
  const session = await start();
  await session[Symbol.asyncDispose]();
  await session.end();
  assert.equal((await session.info()).status, "terminated");
  await assert.rejects(Session.attach(session.id, { client }), { code: "session_ended" });
});

test("a server in a session is reached through its port", async () => {
  const session = await start();
  const run = await session.background("echo found > page.txt; python3 -m http.server 0 --bind 127.0.0.1");
  let ports = [];
  while (ports.length === 0) ports = await session.ports();
  const port = session.port(ports[0].port);
  const page = await port.fetch("/page.txt");
  assert.deepEqual([page.status, page.text()], [200, "found\n"]);
  assert.equal((await port.fetch("nowhere")).status, 404);
  assert.equal(port.url, `${server.url}/v1/sessions/${session.id}/ports/${port.number}/`);
  await assert.rejects(session.port(1).fetch(), { name: "NotFoundError", code: "port_not_open" });
  await run.interrupt();
  await session.end();
});

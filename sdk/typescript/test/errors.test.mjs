import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { inspect } from "node:util";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { howToGetOne } from "../dist/esm/binary.js";
import { fromAnswer } from "../dist/esm/errors.js";
import { sdk } from "./support/sdk.mjs";
import { Server, certificate } from "./support/server.mjs";

const { AbortError, AuthenticationError, BinaryNotFoundError, Client, ConnectionError, Session, SessionClosedError, SessionNotFoundError, SessileError, findBinary } = sdk;
let server, client;

before(async () => {
  server = await Server.start();
  client = server.client();
});
after(() => server.stop());

test("a missing binary says how to get one", async () => {
  const env = { ...server.env, PATH: "/nowhere", XDG_STATE_HOME: join(server.root, "nobody") };
  delete env.SESSILE_BIN;
  const nobody = new Client({ env });
  await assert.rejects(Session.start({ client: nobody }), (error) => {
    assert.ok(error instanceof BinaryNotFoundError && error instanceof SessileError);
    assert.equal(error.code, "binary_not_found");
    assert.match(error.message, /npm install @sessile\/.*cargo build --release -p sessile.*SESSILE_BIN.*SESSILE_URL/);
    return true;
  });
  assert.throws(() => findBinary({ SESSILE_BIN: "/nowhere/sessile" }), /SESSILE_BIN is \/nowhere\/sessile/);
  assert.equal(findBinary({ SESSILE_BIN: server.env.SESSILE_BIN }), server.env.SESSILE_BIN);
});

test("another platform is told what to do", () => {
  assert.match(howToGetOne("darwin"), /sessions live on Linux: .*SESSILE_URL/);
});

test("a program for another machine is told", async () => {
  for (const change of [
    (program) => program.write("\xf3\0", 18, "latin1"),
    (program) => program.write("/lib/ld-elsewhere.so.1\0", program.indexOf(/^x64$/.test(process.arch) ? "/lib64/ld-linux" : "/lib/ld-linux"), "latin1"),
  ]) {
    const program = readFileSync("/bin/true");
    change(program);
    const path = join(server.root, "foreign");
    writeFileSync(path, program, { mode: 0o755 });
    const nobody = new Client({ env: { ...server.env, SESSILE_BIN: path, XDG_STATE_HOME: join(server.root, "nobody") } });
    await assert.rejects(Session.start({ client: nobody }), (error) => {
      assert.ok(error instanceof BinaryNotFoundError);
      assert.match(error.message, /built for another machine.*cargo build.*SESSILE_BIN/);
      return true;
    });
  }
});

test("a server that is not there is told at once, by its address", async () => {
  const nobody = new Client({ url: "http://127.0.0.1:1", env: {} });
  const began = performance.now();
  await assert.rejects(Session.start({ client: nobody }), (error) => {
    assert.ok(error instanceof ConnectionError);
    assert.deepEqual([error.code, error.endpoint], ["connection_failed", "http://127.0.0.1:1"]);
    assert.match(error.message, /no server answers at http:\/\/127\.0\.0\.1:1 \(ECONNREFUSED\); start one with/);
    return true;
  });
  assert.ok(performance.now() - began < 20_000, "it is not retried");
  const socket = new Client({ url: `unix:${server.root}/none.sock`, env: {} });
  await assert.rejects(socket.health(), { code: "connection_failed" });
});

test("what is no Sessile server, and what is no address, is told", async () => {
  const other = createServer((_, response) => response.end("<html>")).listen(0, "127.0.0.1");
  await once(other, "listening");
  const wrong = new Client({ url: `http://127.0.0.1:${other.address().port}`, env: {} });
  await assert.rejects(wrong.health(), { code: "unexpected_answer" });
  wrong.close();
  other.close();
  assert.throws(() => new Client({ url: "localhost:7377" }), { code: "invalid_argument" });
});

test("a wrong token is refused", async () => {
  const stranger = server.client({ token: "wrong" });
  await assert.rejects(Session.start({ client: stranger }), (error) => error instanceof AuthenticationError && error.code === "unauthorized" && error.status === 401);
  assert.throws(() => new Client({ token: "a…b" }), { code: "invalid_argument" });
  await server.client({ token: `${server.token}\n` }).health();
  const none = server.client({ token: "", env: {} });
  await assert.rejects(Session.start({ client: none }), { code: "unauthorized" });
});

test("what is printed of a session or a client has no token and no environment in it", async () => {
  const secret = server.client({ env: { ...server.env, API_KEY: "sk-secret" } });
  const session = await Session.start({ client: secret });
  const run = await session.background("true");
  const printed = [secret, session, run].map((each) => inspect(each, { depth: 9 }));
  assert.deepEqual(printed, [`Client ${server.url}`, `Session ${session.id}`, `Run 1 of ${session.id}`]);
  for (const each of [secret, session, run, session.files]) assert.doesNotMatch(JSON.stringify(each), new RegExp(`sk-secret|${server.token}`));
  await session.end();
});

test("a closed session says so, here and elsewhere", async () => {
  const session = await Session.start({ client });
  const same = await Session.attach(session.id, { client });
  await session.end();
  await assert.rejects(session.exec("ls"), (error) => error instanceof SessionClosedError && /Session\.start/.test(error.hint));
  await assert.rejects(same.exec("ls"), (error) => error instanceof SessionClosedError && error.code === "session_ended");
  await assert.rejects(same.background("ls"), SessionClosedError);
  await assert.rejects(Session.attach("sess_0000", { client }), (error) => error instanceof SessionNotFoundError && error.status === 404);
});

test("hints speak of this package, not of requests", async () => {
  const session = await Session.start({ client });
  const run = await session.background("sleep 1000");
  const hints = [
    [() => server.client({ token: "wrong" }).json({ method: "GET", path: "/v1/top" }), /SESSILE_TOKEN/],
    [() => Session.attach("sess_0000", { client }), /Session\.start/],
    [() => session.exec("x", { env: { "A B": "x" } }), /options/],
    [() => run.keys("x"), /terminal: true/],
    [() => run.input("x"), /interactive: true/],
    [() => session.fork(), /wait: true/],
  ];
  for (const [ask, hint] of hints) {
    await assert.rejects(ask(), (error) => {
      assert.match(error.hint, hint);
      assert.doesNotMatch(error.message, /Authorization|POST|openapi|"\w+": true/);
      return true;
    });
  }
  await session.end();
});

test("wrong requests are told by field, busy sessions by code", async () => {
  const session = await Session.start({ client });
  await assert.rejects(session.exec("ls", { timeout: "soon" }), { code: "invalid_argument" });
  await assert.rejects(session.exec("ls", { env: { "A B": "x" } }), { name: "InvalidRequestError", code: "bad_request" });
  const run = await session.background("sleep 1000");
  await assert.rejects(session.fork(), { name: "BusyError", code: "busy" });
  await run.interrupt();
  await session.end();
});

test("an abort in the middle of a run interrupts it and keeps the session", async () => {
  const session = await Session.start({ client });
  await session.exec("kept=yes; mkfifo begun");
  for (const way of ["exec", "stream"]) {
    const stop = new AbortController();
    const command = "echo > begun; sleep 1000";
    const going = way === "exec" ? session.exec(command, { signal: stop.signal, timeout: 0 }) : drain(session.stream(command, { signal: stop.signal, timeout: 0 }));
    const outcome = assert.rejects(going, (error) => {
      assert.ok(error instanceof AbortError && error.name === "AbortError");
      assert.deepEqual([error.code, error.cause, typeof error.run], ["aborted", "enough", "number"]);
      return true;
    });
    await session.python("open('begun').read()", { timeout: 0 });
    stop.abort("enough");
    await outcome;
    const last = (await session.history()).filter(({ command }) => command.includes("sleep")).at(-1);
    assert.deepEqual([last.interrupted, last.exitCode], [true, 130]);
    assert.equal((await session.exec("echo $kept")).stdout, "yes\n");
  }
  await session.end();
});

for (const way of ["exec", "stream", "own"]) {
  test(`Ctrl-C interrupts the run and keeps the session, and the program ends as it would (${way})`, async () => {
    const session = await Session.start({ client });
    await session.exec("kept=yes; mkfifo begun");
    const program = fileURLToPath(new URL("support/ctrlc.mjs", import.meta.url));
    const env = { ...server.env, SESSILE_URL: server.url, SESSILE_TOKEN: server.token };
    const child = spawn(process.execPath, [program, way, session.id], { env, stdio: ["ignore", "pipe", "inherit"] });
    const [said, gone] = [text(child.stdout), once(child, "exit")];
    await session.python("open('begun').read()", { timeout: 0 });
    child.kill("SIGINT");
    const hasOwn = way === "own";
    assert.deepEqual(await gone, hasOwn ? [0, null] : [null, "SIGINT"]);
    assert.equal(await said, hasOwn ? "own\n130 true 0\nyes\n" : "");
    const run = (await session.history()).find(({ command }) => command.includes("sleep"));
    assert.deepEqual([run.interrupted, run.exitCode], [true, 130]);
    assert.equal((await session.exec("echo $kept [$next]")).stdout, hasOwn ? "yes [begun]\n" : "yes []\n");
    await session.end();
  });
}

test("Ctrl-C is listened for only while a run is waited for", async () => {
  const session = await Session.start({ client });
  const before = process.listenerCount("SIGINT");
  await Promise.all([session.exec("echo"), session.eval("1"), session.exec("ls", { timeout: "soon" }).catch(() => undefined)]);
  for await (const _ of session.stream("echo; sleep 1000")) break;
  assert.equal(process.listenerCount("SIGINT"), before);
  await session.end();
});

test("an abort before anything was sent begins nothing", async () => {
  const session = await Session.start({ client });
  await assert.rejects(session.exec("touch begun", { signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.equal((await session.info()).executionCount, 0);
  await assert.rejects(Session.start({ client, signal: AbortSignal.abort() }), { name: "AbortError" });
  await session.end();
});

test("a wait that is aborted leaves the run going", async () => {
  const session = await Session.start({ client });
  const run = await session.background("read line; echo $line", { interactive: true });
  await assert.rejects(run.wait({ signal: AbortSignal.timeout(50) }), { name: "AbortError" });
  await run.input("still\n");
  assert.equal((await run.wait()).stdout, "still\n");
  await session.end();
});

test("a silent server is not waited for for ever", async () => {
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const waiting = new Client({ url: `http://127.0.0.1:${silent.address().port}`, env: {}, requestTimeout: 50 });
  await assert.rejects(waiting.health(), { name: "TimeoutError", code: "request_timeout" });
  waiting.close();
  silent.closeAllConnections?.();
  silent.close();
});

test("TLS is spoken, and certificates are checked", async () => {
  const { key, cert } = certificate(server.root);
  const safe = await Server.start(["--tls-cert", cert, "--tls-key", key]);
  const known = safe.client({ tls: { ca: readFileSync(cert) } });
  const session = await Session.start({ client: known });
  assert.equal((await session.exec("echo safe")).stdout, "safe\n");
  await session.end();
  const unknown = safe.client();
  await assert.rejects(unknown.health(), (error) => error instanceof ConnectionError && /CERT/.test(error.message));
  await safe.stop({ tls: { ca: readFileSync(cert) } });
});

test("plain HTTP to a port with TLS is told to use https", async () => {
  const { key, cert } = certificate(server.root);
  const safe = await Server.start(["--tls-cert", cert, "--tls-key", key]);
  const plain = safe.client({ url: safe.url.replace("https:", "http:") });
  await assert.rejects(plain.health(), (error) => error instanceof ConnectionError && /does not speak HTTP.*use https:/.test(error.message));
  await safe.stop({ tls: { ca: readFileSync(cert) } });
});

test("a server that went for good may have done what it was asked", async () => {
  const going = createTcpServer((socket) => {
    going.close();
    socket.once("data", () => socket.destroy());
  }).listen(0, "127.0.0.1");
  await once(going, "listening");
  const lost = new Client({ url: `http://127.0.0.1:${going.address().port}`, env: {} });
  await assert.rejects(Session.start({ client: lost }), { code: "connection_lost", hint: /may have been done/ });
  lost.close();
});

test("a hint is not said twice", () => {
  const error = (code, message, hint, path) => fromAnswer(400, { error: { code, message, hint } }, path);
  const hint = "use a token that covers this workspace";
  assert.equal(error("forbidden", `/x is outside; ${hint}`, hint).message, `/x is outside; ${hint}`);
  assert.equal(error("forbidden", "/x is outside", hint).message, `/x is outside; ${hint}`);
  const full = error("bad_directory", "/x: it is not empty; name a new or empty directory", "name a directory that exists");
  assert.deepEqual([full.message, full.hint], ["/x: it is not empty; name a new or empty directory", "name a new or empty directory"]);
  assert.equal(error("not_found", "there is nothing at /v1/agents/x/y", "see /docs for what there is", "/v1/agents/x/y").hint, "check that the server is as new as this package");
});

async function drain(events) {
  for await (const _ of events);
}

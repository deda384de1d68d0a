// The user's own server: nobody starts it by hand.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { realpathSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { after, before, test } from "node:test";
import { sdk } from "./support/sdk.mjs";
import { Local, servers } from "./support/server.mjs";

const { Session, localSocket } = sdk;
const run = promisify(execFile);
let local;

before(() => {
  // A socket's address has 108 bytes; a home may be deeper.
  local = new Local("state/".repeat(20));
});
after(() => local.stop());

test("it is started once, whoever comes first", async () => {
  const smoke = fileURLToPath(new URL("support/smoke.mjs", import.meta.url));
  const programs = Array.from({ length: 3 }, () => run(process.execPath, [smoke], { env: local.env, cwd: local.root }));
  const clients = Array.from({ length: 5 }, () => local.client());
  const sessions = await Promise.all(clients.map((client) => Session.start({ client, workspace: local.root })));
  for (const session of sessions) assert.equal((await session.exec("pwd -P")).stdout, `${realpathSync(local.root)}\n`);
  for (const { stdout } of await Promise.all(programs)) assert.equal(stdout, "ok\n");
  const pid = await local.pid();
  assert.deepEqual(servers(local.env), [pid]);
  assert.equal(clients[0].endpoint, `unix:${localSocket(local.env)}`);
  await Promise.all(sessions.map((session) => session.end()));
});

test("the workspace is where the program is, and its PATH is the session's", async () => {
  const session = await Session.start({ client: local.client() });
  assert.equal((await session.exec("pwd -P; printf %s \"$PATH\"")).stdout, `${process.cwd()}\n${process.env.PATH}`);
  await session.end();
});

test("a server that is killed is started again, and no run is lost or done twice", async () => {
  const session = await Session.start({ client: local.client(), workspace: local.root });
  await session.exec("n=0; mkfifo begun on");
  const going = session.exec("n=$((n+1)); echo > begun; read < on; echo $n", { timeout: 0 });
  await session.python("open('begun').read()");
  const pid = await local.kill();
  await session.python("open('on', 'w').write('\\n')");
  const result = await going;
  assert.deepEqual([result.stdout, result.repeated], ["1\n", true]);
  assert.notEqual(await local.pid(), pid);
  assert.equal((await session.exec("echo $n")).stdout, "1\n");
  await session.end();
});

test("a stream outlives the server", async () => {
  const session = await Session.start({ client: local.client(), workspace: local.root });
  let text = "";
  for await (const event of session.stream("echo one; read line; echo $line", { interactive: true })) {
    if (event.type !== "stdout") continue;
    text += event.data;
    if (event.data !== "one\n") continue;
    await local.kill();
    await session.run(event.run).input("two\n");
  }
  assert.equal(text, "one\ntwo\n");
  await session.end();
});

test("a program that is killed takes its sessions along, but for those that were meant to last", async () => {
  const program = fileURLToPath(new URL("support/leaves.mjs", import.meta.url));
  const child = spawn(process.execPath, [program], { env: local.env, cwd: local.root, stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(createInterface(child.stdout), "line");
  const ids = JSON.parse(line);
  child.kill("SIGKILL");
  const client = local.client();
  const attached = await Promise.all(ids.lasting.map((id) => Session.attach(id, { client })));
  for (const id of ids.fleeting) {
    // Its events end when it does.
    const session = await Session.attach(id, { client }).catch((error) => assert.equal(error.code, "session_ended"));
    if (session) for await (const _ of session.events());
  }
  for (const session of attached) {
    assert.equal((await session.exec("echo $x")).stdout, "1\n");
    await session.end();
  }
});

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Proxy } from "./support/proxy.mjs";
import { sdk } from "./support/sdk.mjs";
import { Server } from "./support/server.mjs";

const { Session } = sdk;
let server, proxy, client;

before(async () => {
  server = await Server.start();
  proxy = await Proxy.before(server.port);
  client = server.client({ url: proxy.url });
});
after(async () => {
  await server.stop();
  await proxy.close();
});

test("events are typed, in order, and end with closed", async () => {
  const session = await Session.start({ client });
  const seen = [];
  for await (const event of session.stream("echo out; echo err >&2; (exit 4)")) {
    seen.push(event.type);
    if (event.type === "stdout") assert.equal(event.data, "out\n");
    if (event.type === "stderr") assert.deepEqual([...event.bytes], [...Buffer.from("err\n")]);
    if (event.type === "exited") assert.equal(event.result.exitCode, 4);
  }
  assert.deepEqual([seen[0], ...seen.slice(-2)], ["started", "exited", "closed"]);
  assert.deepEqual(seen.slice(1, -2).sort(), ["stderr", "stdout"]);
  await session.end();
});

test("a stream goes on where it broke: nothing is missed, nothing comes twice", async () => {
  const session = await Session.start({ client });
  await session.exec("mkfifo turns; exec 3<>turns");
  let text = "";
  let ends = 0;
  for await (const event of session.stream("for i in 1 2 3 4 5; do read -u3; echo line $i; done", { timeout: 0 })) {
    if (event.type === "started" || event.type === "stdout") {
      // Each line is written after the connection was cut.
      text += event.data ?? "";
      proxy.cut();
      if (!text.includes("line 5")) await session.run(1).output().then(() => session.python("open('turns', 'w').write('\\n')"));
    }
    if (event.type === "exited") ends += 1;
  }
  assert.equal(text, "line 1\nline 2\nline 3\nline 4\nline 5\n");
  assert.equal(ends, 1);
  await session.end();
});

test("a session whose start was answered into the void is not started twice", async () => {
  const count = async () => {
    let live = 0;
    for await (const _ of client.sessions({ status: "active" })) live += 1;
    return live;
  };
  const before = await count();
  proxy.losing = 2;
  const session = await Session.start({ client, name: "once" });
  assert.equal(proxy.losing, 0);
  assert.equal((await session.exec("echo ok")).stdout, "ok\n");
  const again = { client, idempotencyKey: "mine", env: { A: "1" } };
  const [one, two] = [await Session.start(again), await Session.start(again)];
  assert.equal(one.id, two.id);
  await assert.rejects(Session.start({ client, idempotencyKey: "mine" }), { code: "key_reused" });
  assert.equal(await count(), before + 2);
  await session.end();
  await one.end();
});

test("an order whose answer was lost is not carried out twice", async () => {
  const session = await Session.start({ client });
  await session.exec("n=0");
  proxy.lost = 0;
  for (let i = 1; i <= 5; i++) {
    proxy.losing = i % 3;
    const result = await session.exec("n=$((n+1)); echo $n");
    assert.equal(result.stdout, `${i}\n`);
    assert.equal(result.repeated, i % 3 > 0);
  }
  assert.equal(proxy.lost, 6);
  proxy.losing = 1;
  const run = await session.background("n=$((n+1)); echo $n");
  assert.equal((await run.wait()).stdout, "6\n");
  proxy.losing = 1;
  const seen = [];
  for await (const event of session.stream("n=$((n+1)); echo $n")) if (event.type === "stdout") seen.push(event.data);
  assert.deepEqual(seen, ["7\n"]);
  assert.equal((await session.info()).executionCount, 8);
  await session.end();
});

test("what may not be done twice is not sent twice", async () => {
  const session = await Session.start({ client });
  proxy.losing = 1;
  await assert.rejects(session.fork(), { name: "ConnectionError", code: "connection_lost" });
  const run = await session.background("cat", { interactive: true });
  proxy.losing = 1;
  await assert.rejects(run.input("once\n"), { code: "connection_lost" });
  await run.endInput();
  assert.equal((await run.wait()).stdout, "once\n");
  await session.end();
});

test("the same key is the same order, also from another client", async () => {
  const session = await Session.start({ client });
  const idempotencyKey = "deploy-1";
  const first = await session.exec("d=$((d+1)); echo $d", { idempotencyKey });
  const second = await (await Session.attach(session.id, { client: server.client() })).exec("d=$((d+1)); echo $d", { idempotencyKey });
  assert.deepEqual([first.stdout, first.repeated, second.stdout, second.repeated], ["1\n", false, "1\n", true]);
  await assert.rejects(session.exec("ls", { idempotencyKey }), { name: "ConflictError", code: "key_reused" });
  await session.end();
});

test("leaving the loop leaves the run going; all runs of a session are seen by who follows it", async () => {
  const session = await Session.start({ client });
  const followed = [];
  const following = (async () => {
    for await (const event of session.events({ output: true })) {
      followed.push([event.type, event.run]);
      if (event.type === "closed" && event.run === 2) break;
    }
  })();
  let run;
  for await (const event of session.stream("echo begun; read line; echo $line", { interactive: true })) {
    run = event.run;
    if (event.type === "stdout") break;
  }
  await session.run(run).input("on\n");
  assert.equal((await session.run(run).wait()).stdout, "begun\non\n");
  proxy.cut();
  await session.exec("echo two");
  await following;
  assert.ok(followed.some(([type, number]) => type === "exited" && number === run));
  await session.end();
});

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { Reader } from "../dist/esm/agents/events.js";
import { Proxy } from "./support/proxy.mjs";
import { agents, sdk } from "./support/sdk.mjs";
import { Model, exec } from "./support/model.mjs";
import { Server, passOver } from "./support/server.mjs";

const { Agent, CloudRuntime, TaskFailedError, run, stream } = agents;
const KEY = "sk-test-0123456789";

before(() => {
  process.env.MODEL_KEY = KEY;
});

/** A server whose agents use this script, and a runtime of it. */
async function scripted(script, options = {}) {
  const model = await Model.start(script);
  const server = await Server.start(["--config", "conf.toml"], (root) => writeFileSync(join(root, "conf.toml"), model.configuration()));
  const { url, token } = server;
  const runtime = new CloudRuntime({ url, token, env: server.env, ...options });
  const workspace = server.root;
  return { model, server, runtime, workspace, place: { runtime, workspace } };
}

async function ended({ model, server, runtime }) {
  runtime.client.close();
  model.close();
  await server.stop();
}

test("two tasks are one session and one thread, and a reset begins anew", async () => {
  const here = await scripted([exec("x=41; echo begun > app.py"), "app.py is there", exec("echo $((x+1))"), "it is 42"]);
  const { runtime, workspace } = here;
  const agent = new Agent({ agentType: "computer", runtime, workspace });
  assert.deepEqual([agent.currentSessionId, agent.currentThreadId], [undefined, undefined]);
  const first = await run(agent, "Create app.py");
  assert.deepEqual([first.output, first.ended, first.success, first.task], ["app.py is there", "done", true, 1]);
  assert.equal(readFileSync(join(workspace, "app.py"), "utf8"), "begun\n");
  assert.match(first.sessionId, /^sess_/);
  assert.match(first.threadId, /^thread_/);
  assert.deepEqual(first.continuity.status, "live");
  assert.deepEqual(first.usage, { inputTokens: 200, cachedTokens: 0, outputTokens: 20 });
  assert.ok(Math.abs(first.cost - 0.00024) < 1e-9, `${first.cost}`);
  const [step, last] = first.steps;
  assert.equal(first.steps.length, 2);
  assert.deepEqual([step.calls[0].tool, step.calls[0].input.command, step.calls[0].run, step.calls[0].isError], ["runtime", "x=41; echo begun > app.py", 1, false]);
  assert.deepEqual([last.text, last.calls], ["app.py is there", []]);

  const second = await run(agent, "What is x+1?");
  assert.deepEqual([second.output, second.sessionId, second.threadId, second.task], ["it is 42", first.sessionId, first.threadId, 2]);
  assert.match(second.steps[0].calls[0].output, /42/);
  assert.equal(agent.currentThreadId, first.threadId);

  agent.resetSession();
  assert.equal(agent.currentThreadId, undefined);
  const fresh = await run(agent, "Begin again");
  assert.notEqual(fresh.sessionId, first.sessionId);
  assert.notEqual(fresh.threadId, first.threadId);
  const info = await agent.resumeSession(first.sessionId);
  assert.deepEqual([info.taskCount, info.status, agent.currentThreadId], [2, "idle", first.threadId]);
  const session = await agent.session();
  assert.equal((await session.exec("echo $x")).stdout, "41\n");
  await ended(here);
});

test("an agent is found again by another program, also after the server was killed", async () => {
  const here = await scripted([exec("x=41"), "done", exec("echo $((x+1))"), "it is 42"]);
  const { server, runtime, workspace } = here;
  const first = await run(new Agent({ runtime, workspace }), "Set x");
  await server.kill();
  await server.run();
  const another = new Agent({ runtime: new CloudRuntime({ url: server.url, token: server.token, env: server.env }) });
  await another.resumeSession(first.sessionId);
  const second = await run(another, "What is x+1?");
  assert.deepEqual([second.output, second.sessionId, second.threadId], ["it is 42", first.sessionId, first.threadId]);
  assert.match(second.steps[0].calls[0].output, /42/);
  another.runtime.client.close();
  await ended(here);
});

test("events are told as they happen, with the model's words", async () => {
  const here = await scripted([exec("echo hello"), "it says hello"]);
  const agent = new Agent(here.place);
  const events = [];
  const going = stream(agent, "Say hello");
  let result;
  for (;;) {
    const { done, value } = await going.next();
    if (done) {
      result = value;
      break;
    }
    events.push(value);
  }
  const kinds = events.map(({ type }) => type).filter((type) => type !== "delta" && type !== "other");
  assert.deepEqual(kinds, ["task", "reply", "outcome", "reply", "ended"]);
  const words = events.filter(({ type }) => type === "delta").map(({ text }) => text).join("");
  assert.ok("it says hello".endsWith(words), words);
  const outcome = events.find(({ type }) => type === "outcome");
  assert.deepEqual([outcome.run, outcome.isError, /hello/.test(outcome.text), outcome.at instanceof Date], [1, false, true, true]);
  assert.equal(result.output, "it says hello");
  await ended(here);
});

test("calls wait for the caller's word where that is wanted", async () => {
  const here = await scripted([exec("touch one"), exec("touch two"), "done"]);
  const asked = [];
  const onApproval = async (call) => {
    asked.push(call.input.command);
    return call.input.command === "touch two" || { allow: false, reason: "not that one" };
  };
  const agent = new Agent({ ...here.place, onApproval });
  const result = await run(agent, "make files");
  assert.deepEqual(asked, ["touch one", "touch two"]);
  assert.deepEqual([existsSync(join(here.workspace, "one")), existsSync(join(here.workspace, "two"))], [false, true]);
  assert.equal(result.steps[0].calls[0].output, "the user does not allow this: not that one");
  // An approver that fails is the caller's own trouble: the task ends, and the error is theirs.
  const failing = new Agent({ ...here.place, onApproval: () => { throw new Error("no idea"); } });
  await assert.rejects(run(failing, "make files"), /no idea/);
  assert.equal((await failing.info()).status, "idle");
  await ended(here);
});

test("an aborted task is cancelled, and the agent goes on from there", async () => {
  const here = await scripted([exec("touch begun; sleep 1000"), "never mind", "I am here"]);
  const agent = new Agent(here.place);
  const stop = new AbortController();
  const going = run(agent, "wait", { signal: stop.signal });
  const rejected = assert.rejects(going, { name: "AbortError" });
  const watching = new sdk.Client({ url: here.server.url, token: here.server.token });
  while (!existsSync(join(here.workspace, "begun"))) await watching.health();
  for (const asked of [() => run(agent, "more"), () => agent.fork(), () => agent.rewind(0)]) {
    await assert.rejects(asked(), (error) => error instanceof sdk.BusyError && /wait for it, or cancel it$/.test(error.message) && /cancel/.test(error.hint));
  }
  stop.abort();
  await rejected;
  assert.equal((await agent.info()).status, "idle");
  const next = await run(agent, "still there?");
  assert.equal(next.output, "never mind");
  watching.close();
  await ended(here);
});

test("a task goes on without its caller, and another one comes back to it", async () => {
  const here = await scripted([exec("echo once >> log"), "done"]);
  here.model.hold();
  const begun = await new Agent(here.place).begin("do it");
  const other = new Agent(here.place);
  await other.resumeSession(begun.sessionId);
  const task = await other.lastTask();
  assert.equal(task.number, begun.number);
  here.model.release();
  const result = await task.result();
  assert.deepEqual([result.output, result.steps.length], ["done", 2]);
  assert.equal(readFileSync(join(here.workspace, "log"), "utf8"), "once\n");
  await ended(here);
});

test("forks have the same past, and go their own ways", async () => {
  const here = await scripted([exec("x=1"), "one", exec("x=$((x+1)); echo $x"), "two"]);
  const agent = new Agent(here.place);
  const { sessionId, threadId } = await run(agent, "begin");
  const forks = await agent.fork(2);
  const results = await Promise.all(forks.map((fork) => run(fork, "go on")));
  for (const result of results) assert.match(result.steps[0].calls[0].output, /2/);
  const all = new Set([sessionId, ...results.map((result) => result.sessionId)]);
  const threads = new Set([threadId, ...forks.map((fork) => fork.currentThreadId)]);
  assert.deepEqual([all.size, threads.size], [3, 3]);
  assert.equal((await (await agent.session()).exec("echo $x")).stdout, "1\n");
  await ended(here);
});

test("a rewind takes back conversation, interpreters and files together", async () => {
  const here = await scripted([exec("x=1; echo one > file"), "one", exec("x=2; echo two > file"), "two", exec("echo $x $(cat file)"), "three"]);
  const agent = new Agent(here.place);
  const first = await run(agent, "one");
  const second = await run(agent, "two");
  assert.deepEqual(second.steps.map(({ number }) => number), [3, 4]);
  const rewound = await agent.rewind(first.steps.at(-1).number);
  assert.deepEqual([rewound.step, rewound.steps, rewound.tasks], [2, [3, 4], [2]]);
  assert.equal(readFileSync(join(here.workspace, "file"), "utf8"), "one\n");
  assert.equal((await (await agent.session()).exec("echo $x")).stdout, "1\n");
  // The model has not said the second either: the script goes on from there.
  const again = await run(agent, "two, again");
  assert.equal(again.output, "two");
  await agent.undo();
  assert.deepEqual((await agent.tasks()).map(({ task, takenBack }) => [task, takenBack ?? false]), [[3, true], [2, true], [1, false]]);
  await assert.rejects(agent.rewind(99), (error) => error instanceof sdk.NotFoundError && !/as new as/.test(error.message));
  await ended(here);
});

test("an agent moves from one server to another, and goes on there", async () => {
  const script = [exec("x=41; echo here > note"), "moved in", exec("echo $((x+1)) $(cat note)"), "it is 42"];
  const [there, elsewhere] = [await scripted(script), await scripted(script)];
  const agent = new Agent(there.place);
  const first = await run(agent, "begin");
  const workspace = join(elsewhere.workspace, "new home");
  await agent.moveTo(elsewhere.runtime, { workspace });
  assert.equal(agent.runtime, elsewhere.runtime);
  assert.equal(agent.currentThreadId, first.threadId);
  assert.notEqual(agent.currentSessionId, first.sessionId);
  const second = await run(agent, "go on");
  assert.equal(second.output, "it is 42");
  assert.match(second.steps[0].calls[0].output, /42 here/);
  assert.equal(readFileSync(join(workspace, "note"), "utf8"), "here\n");
  // The old place says where it is.
  const left = new Agent(there.place);
  await left.resumeSession(first.sessionId);
  const refusal = await run(left, "more").catch((error) => error);
  assert.deepEqual([refusal.code, refusal.message.includes(agent.currentSessionId)], ["agent_moved", true]);
  await ended(elsewhere);
  await ended(there);
});

test("a task whose beginning was answered into the void is not begun twice", async () => {
  const here = await scripted([exec("echo once >> log"), "done", "no more"]);
  const proxy = await Proxy.before(here.server.port);
  const runtime = new CloudRuntime({ url: proxy.url, token: here.server.token, env: here.server.env });
  const agent = new Agent({ ...here.place, runtime });
  // The answer to the making of the agent.
  proxy.losing = 1;
  await agent.begin("do it").then((task) => task.result());
  // The answer to the task itself.
  proxy.losing = 1;
  const second = await run(agent, "more");
  assert.deepEqual([second.task, second.output, proxy.lost], [2, "no more", 2]);
  assert.equal(readFileSync(join(here.workspace, "log"), "utf8"), "once\n");
  const { agents: all } = await here.runtime.client.json({ method: "GET", path: "/v1/agents" });
  assert.equal(all.length, 1);
  runtime.client.close();
  await ended(here);
  await proxy.close();
});

test("an agent can be confined, and have its prices", async (t) => {
  const here = await scripted([exec("touch made; echo $?"), "done"]);
  const agent = new Agent({ ...here.place, sandbox: "read-only", limits: { maxCost: 1000, price: { input: 7, output: 7 } } });
  try {
    const { steps, usage, cost } = await run(agent, "write");
    assert.match(steps[0].calls[0].output, /Read-only/);
    assert.equal(existsSync(join(here.workspace, "made")), false);
    assert.ok(Math.abs(cost - (usage.inputTokens + usage.outputTokens) * 7e-6) < 1e-9);
  } catch (error) {
    passOver(t, error);
  } finally {
    await ended(here);
  }
});

test("what goes wrong is told by a stable word, and nothing is lost", async () => {
  const unknown = { status: 404, body: { error: { message: "no such model: test-1" } } };
  const here = await scripted([unknown]);
  const agent = new Agent(here.place);
  const failure = await run(agent, "do it").catch((error) => error);
  assert.ok(failure instanceof TaskFailedError && failure instanceof sdk.SessileError);
  assert.deepEqual([failure.code, failure.result.ended, failure.result.success], ["unknown_model", "failed", false]);
  assert.match(failure.message, /no such model: test-1; check the model's name/);
  here.model.script = [exec("echo 1"), exec("echo 2"), "here I am"];
  const limited = await run(agent, "count", { limits: { maxSteps: 2 } });
  assert.deepEqual([limited.ended, limited.limit, limited.output, limited.success], ["limit", "steps", "", false]);
  assert.equal((await run(agent, "again")).output, "here I am");

  await assert.rejects(run(agent, "  "), sdk.InvalidRequestError);
  await assert.rejects(run(agent, "x", { limits: { maxStepz: 1 } }), /unknown field "maxStepz"/);
  await assert.rejects(run(agent, "x", { limits: { price: { inputs: 1 } } }), sdk.InvalidRequestError);
  await assert.rejects(run(new Agent({ ...here.place, model: "none" }), "x"), /there is no model "none"; there are: scripted/);
  await assert.rejects(run(new Agent({ ...here.place, workspace: "/nowhere" }), "x"), sdk.SessileError);
  await assert.rejects(new Agent(here.place).resumeSession("sess_0000"), sdk.SessionNotFoundError);
  await assert.rejects(new Agent(here.place).fork(2), { code: "invalid_argument" });
  assert.throws(() => new Agent({ agentType: "llm" }), { code: "invalid_argument" });
  const wrong = new CloudRuntime({ url: here.server.url, token: "wrong" });
  await assert.rejects(run(new Agent({ runtime: wrong }), "x"), sdk.AuthenticationError);
  wrong.client.close();
  await ended(here);
});

test("the key of the model reaches it, and debug lines have no secrets", async () => {
  const lines = [];
  const here = await scripted([exec("env"), "done"], { debug: (line) => lines.push(line) });
  const result = await run(new Agent(here.place), "look");
  assert.equal(here.model.requests[0].headers.authorization, `Bearer ${KEY}`);
  assert.ok(!JSON.stringify(result).includes(KEY));
  assert.ok(lines.some((line) => /^POST \/v1\/agents: 201 after \d+ ms$/.test(line)), lines.join("\n"));
  assert.ok(!lines.join("\n").includes(here.server.token));
  await ended(here);
});

test("what happens between steps has types", () => {
  const at = { entry: 7, at: new Date(1000) };
  const read = (event, wire) => new Reader().read({ event, data: JSON.stringify({ entry: 7, at_ms: 1000, type: event, ...wire }) });
  assert.deepEqual(read("intent", { call: "c", after: "b2" }), { type: "intent", ...at, call: "c", before: undefined, after: "b2" });
  const lost = ["run 4, which was going"];
  const continued = read("continued", { session_id: "s", status: "restored", as_of_run: 3, lost });
  assert.deepEqual(continued, { type: "continued", ...at, continuity: { status: "restored", asOfRun: 3, lost } });
  const failure = { fault: "rate_limited", message: "too many requests" };
  const retry = read("retry", { attempt: 1, after_ms: 500, failure: { ...failure, retry_after_ms: 500 } });
  assert.deepEqual(retry, { type: "retry", attempt: 1, afterMs: 500, failure: { ...failure, retryAfterMs: 500 } });
  assert.equal(read("activity", {}).type, "other");
});

test("a server that goes away for good is told with how to go on", async () => {
  const here = await scripted([exec("until [ -e go ]; do sleep 0.05; done"), "done"], { retryFor: 200 });
  const agent = new Agent(here.place);
  const wait = async () => {
    for await (const event of stream(agent, "Wait")) if (event.type === "reply") await here.server.kill();
  };
  const gone = await wait().catch((error) => error);
  assert.deepEqual([gone.name, gone.code], ["ConnectionError", "connection_lost"]);
  assert.match(gone.message, /went away during the stream, and did not come back/);
  assert.match(gone.hint, new RegExp(`resumeSession\\("${agent.currentSessionId}"\\) and lastTask\\(\\)`));
  // What it says helps.
  await here.server.run();
  writeFileSync(join(here.workspace, "go"), "");
  const runtime = new CloudRuntime({ url: here.server.url, token: here.server.token, env: here.server.env });
  const again = new Agent({ runtime, workspace: here.workspace });
  await again.resumeSession(agent.currentSessionId);
  assert.equal((await (await again.lastTask()).result()).output, "done");
  await again.end();
  runtime.client.close();
  await ended(here);
});

test("what is not there is told in words of this package", async () => {
  const here = await scripted(["done"]);
  const session = await sdk.Session.start({ client: here.runtime.client });
  const none = await new Agent(here.place).resumeSession(session.id).catch((error) => error);
  assert.deepEqual([none.code, /\/v1\//.test(none.message)], ["agent_not_found", false]);
  assert.match(none.hint, /resumeSession/);
  await session.end();
  const agent = new Agent(here.place);
  assert.equal(await run(agent, "begin").then((result) => result.output), "done");
  await assert.rejects(agent.rewind(99), { code: "checkpoint_not_found", message: /no step 99/, hint: "take a step that there is; 0 is before the first one" });
  await agent.undo();
  await assert.rejects(agent.undo(), { code: "checkpoint_not_found", hint: "give the agent a task first" });
  await agent.end();
  await ended(here);
});

test("an agent that was ended takes no more tasks", async () => {
  const here = await scripted(["done"]);
  const agent = new Agent(here.place);
  const first = await run(agent, "begin");
  await agent.end();
  await agent.end();
  await assert.rejects(run(agent, "more"), { name: "SessionClosedError", code: "session_ended", hint: "resetSession() lets the next task begin a new one" });
  // What was said stays.
  assert.deepEqual([agent.currentSessionId, (await agent.tasks()).map(({ output }) => output)], [first.sessionId, ["done"]]);
  agent.resetSession();
  assert.notEqual((await run(agent, "again")).sessionId, first.sessionId);
  await ended(here);
});

// What has to work wherever JavaScript runs: with Node, Bun and Deno.
// The server is in SESSILE_URL and SESSILE_TOKEN, or is the local one.
import assert from "node:assert/strict";
import { AbortError, createRuntimeTool, globalRuntimeManager, Session } from "../../dist/esm/index.js";

const session = await Session.start();
await session.exec("x=41");
assert.equal((await session.exec("echo $((x+1))")).stdout, "42\n");
assert.equal((await session.eval("6 * 7")).result, "42");

const seen = [];
for await (const event of session.stream("echo out; echo err >&2")) seen.push(event.type);
assert.deepEqual(seen.sort(), ["closed", "exited", "started", "stderr", "stdout"]);

const run = await session.background("read line; echo got $line", { interactive: true });
await run.input("it\n");
assert.equal((await run.wait()).stdout, "got it\n");

const stop = new AbortController();
const going = session.exec("sleep 100", { signal: stop.signal });
while (!(await session.runs()).some(({ command, phase }) => command === "sleep 100" && phase === "running"));
stop.abort();
await assert.rejects(going, AbortError);
assert.equal((await session.exec("echo $x")).stdout, "41\n");
await assert.rejects(Session.attach("sess_0000"), { code: "session_not_found" });

const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => session.exec(`echo ${i}`)));
assert.deepEqual(answers.map(({ stdout }) => stdout), Array.from({ length: 50 }, (_, i) => `${i}\n`));

const tool = createRuntimeTool("smoke");
assert.equal((await tool.execute("1", { action: "eval", command: "1 + 1" })).details.result, "2");
await globalRuntimeManager.terminateAll();
await session[Symbol.asyncDispose]();
console.log("ok");

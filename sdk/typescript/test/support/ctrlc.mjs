// Waits for a run, in the way that is asked for, and tells what it sees of Ctrl-C.
import { createRequire } from "node:module";

const [way, id] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const { Session } = process.env.SESSILE_TEST_FORM === "cjs" ? require("sessile") : await import("sessile");
const session = await Session.attach(id);
const command = "echo > begun; sleep 1000";
if (way === "own") process.once("SIGINT", () => console.log("own"));
if (way === "stream") for await (const _ of session.stream(command, { timeout: 0 }));
else {
  const { exitCode, interrupted } = await session.exec(command, { timeout: 0 });
  console.log(exitCode, interrupted, process.listenerCount("SIGINT"));
}
// Nothing comes after a Ctrl-C that nobody handles.
console.log((await session.exec("next=begun; echo $kept")).stdout.trim());

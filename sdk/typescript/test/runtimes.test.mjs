// Other runtimes than the Node that runs the tests.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { after, before, test } from "node:test";
import { Local } from "./support/server.mjs";

const smoke = fileURLToPath(new URL("support/smoke.mjs", import.meta.url));
let server;

before(() => {
  server = new Local();
});
after(() => server.stop());

const runtimes = {
  bun: [process.env.SESSILE_TEST_BUN, ["run"]],
  deno: [process.env.SESSILE_TEST_DENO, ["run", "--quiet", "--no-config", "--allow-all"]],
  "the newest Node": [process.env.SESSILE_TEST_NEWEST_NODE, []],
};

for (const [name, [program, args]] of Object.entries(runtimes)) {
  const skip = program ? false : `${name} is not installed`;
  test(`it works with ${name}, and the program ends by itself`, { skip }, async () => {
    const { stdout } = await promisify(execFile)(program, [...args, smoke], { env: server.env, timeout: 300_000 });
    assert.equal(stdout, "ok\n");
  });
}

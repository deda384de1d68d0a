// Many sessions from one program, while the server is killed again and again.
// SESSILE_TEST_SESSIONS=1000 for the long form.
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, test } from "node:test";
import { sdk } from "./support/sdk.mjs";
import { Local } from "./support/server.mjs";

const { Session } = sdk;
const SESSIONS = Number(process.env.SESSILE_TEST_SESSIONS ?? 40);
const RUNS = 6;
let local;

before(() => {
  local = new Local();
});
after(() => local.stop());

test(`${SESSIONS} sessions and a server that is killed: no run is lost, none done twice, none answered wrong`, async () => {
  const client = local.client();
  const sessions = await Promise.all(
    Array.from({ length: SESSIONS }, async (_, i) => {
      const session = await Session.start({ client, workspace: local.root, env: { NUMBER: String(i) } });
      await session.exec("n=0");
      return session;
    }),
  );
  const repeated = { runs: 0 };
  for (let run = 1; run <= RUNS; run++) {
    const isKilled = run % 2 === 0;
    const [begun, gate] = ["begun", "gate"].map((name) => join(local.root, `${name}-${run}`));
    const command = isKilled ? `n=$((n+1)); : > ${begun}; until [ -e ${gate} ]; do sleep 0.2; done; echo $NUMBER $n` : "n=$((n+1)); echo $NUMBER $n";
    const answers = Promise.all(sessions.map((session) => session.exec(command, { timeout: 0 })));
    answers.catch(() => undefined);
    if (isKilled) {
      // Runs are going now, and others are on their way; all their answers are lost.
      while (!existsSync(begun)) await sleep(5);
      await local.kill();
      writeFileSync(gate, "");
    }
    for (const [i, result] of (await answers).entries()) {
      assert.equal(result.stdout, `${i} ${run}\n`);
      if (result.repeated) repeated.runs += 1;
    }
  }
  assert.ok(repeated.runs >= RUNS / 2, `${repeated.runs} answers were asked for again`);
  const counts = await Promise.all(sessions.map(async (session) => (await session.info()).executionCount));
  assert.deepEqual(new Set(counts), new Set([RUNS + 1]));
});

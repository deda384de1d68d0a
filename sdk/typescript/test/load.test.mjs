// Many sessions from one program, while the server is killed again and again.
// SESSILE_TEST_SESSIONS=1000 for the long form.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sdk } from "./support/sdk.mjs";
import { Local } from "./support/server.mjs";

const { Session } = sdk;
const SESSIONS = Number(process.env.SESSILE_TEST_SESSIONS ?? 40);
const RUNS = 6;
const KILLS = 3;
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
  let answered = 0;
  let killed = 0;
  let kills = Promise.resolve();
  const killing = () => {
    // At these moments many runs are going, and their answers are lost.
    if (answered < ((killed + 1) * SESSIONS * RUNS) / (KILLS + 1) || killed >= KILLS) return;
    killed += 1;
    // One after the other: the next one kills the next server.
    kills = kills.then(() => local.kill());
  };
  const repeated = { runs: 0 };
  await Promise.all(
    sessions.map(async (session, i) => {
      for (let run = 1; run <= RUNS; run++) {
        const result = await session.exec("n=$((n+1)); sleep 0.1; echo $NUMBER $n");
        assert.equal(result.stdout, `${i} ${run}\n`);
        if (result.repeated) repeated.runs += 1;
        answered += 1;
        killing();
      }
    }),
  );
  await kills;
  assert.equal(killed, KILLS);
  assert.ok(repeated.runs > 0);
  const counts = await Promise.all(sessions.map(async (session) => (await session.info()).executionCount));
  assert.deepEqual(new Set(counts), new Set([RUNS + 1]));
  console.log(`# ${answered} runs, ${killed} kills, ${repeated.runs} answers were asked for again`);
});

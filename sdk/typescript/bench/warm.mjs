// A warm `:` through the SDK beside plain HTTP, in turns: both meet the same noise.
// The server is the local one, in a state directory of its own.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import * as http from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MOST_MS = 0.2;
const ROUNDS = 40;
const CALLS = 60;

const root = mkdtempSync(join(tmpdir(), "sessile-bench-"));
process.env.XDG_STATE_HOME = root;
const began = performance.now();
const { Client, Session, findBinary } = await import("../dist/esm/index.js");
const imported = performance.now() - began;
const { socket, pid } = JSON.parse(execFileSync(findBinary(), ["serve", "--local", "--background"]));
const client = new Client();
const session = await Session.start({ client, workspace: root });
const path = `/v1/sessions/${session.id}/exec`;
const body = '{"command":":"}';

/** Bytes on a socket: as little as HTTP can be. */
async function bare() {
  const connection = connect(socket);
  await once(connection, "connect");
  const request = `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  let answered;
  connection.on("data", (data) => {
    if (!data.includes('"exit_code":0')) throw new Error(data.toString());
    answered();
  });
  return {
    call: () =>
      new Promise((resolve) => {
        answered = resolve;
        connection.write(request);
      }),
    close: () => connection.destroy(),
  };
}

/** Node's own client, as one would use it. */
function plain() {
  const agent = new http.Agent({ keepAlive: true });
  const headers = { "content-type": "application/json", "content-length": body.length };
  const call = () =>
    new Promise((resolve, reject) => {
      const request = http.request({ socketPath: socket, path, method: "POST", agent, headers }, (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (data) => (text += data));
        response.on("end", () => resolve(JSON.parse(text)));
      });
      request.on("error", reject);
      request.end(body);
    });
  return { call, close: () => agent.destroy() };
}

const names = { bare: "`:` over a bare socket", plain: "`:` over node:http", sdk: "`:` through the SDK" };
const ways = { bare: await bare(), plain: plain(), sdk: { call: () => session.exec(":"), close: () => client.close() } };
const samples = { bare: [], plain: [], sdk: [] };
for (let round = -5; round < ROUNDS; round++) {
  for (const [name, { call }] of Object.entries(ways)) {
    for (let i = 0; i < CALLS; i++) {
      const start = performance.now();
      await call();
      if (round >= 0) samples[name].push(performance.now() - start);
    }
  }
}
const quantile = (name, q) => samples[name].sort((a, b) => a - b)[Math.floor((samples[name].length - 1) * q)];
const micros = (ms) => `${Math.round(ms * 1000)} µs`;
for (const name of Object.keys(ways)) {
  const [best, half, most] = [0.1, 0.5, 0.9].map((q) => micros(quantile(name, q)));
  console.log(`  ${names[name].padEnd(40)} ${half.padStart(10)} (p10 ${best}, p90 ${most})`);
}
for (const base of ["bare", "plain"]) {
  const more = quantile("sdk", 0.5) - quantile(base, 0.5);
  console.log(`  → the SDK beside ${names[base]}: ${more.toFixed(3)} ms more (to hold: ≤ ${MOST_MS}${more > MOST_MS ? ", MISSED" : ""})`);
}
console.log(`  import: ${imported.toFixed(1)} ms`);
await session.end();
for (const { close } of Object.values(ways)) close();
process.kill(pid);
rmSync(root, { recursive: true, force: true });

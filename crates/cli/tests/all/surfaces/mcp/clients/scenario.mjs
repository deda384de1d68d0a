// What both TypeScript clients are tried with.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

/** Packages are where the tests have installed them. */
export function load(name) {
  const require = createRequire(`${process.env.SESSILE_TEST_MCP_NODE}/package.json`);
  return import(pathToFileURL(require.resolve(name)));
}

export function parameters() {
  // The clients hand only a few variables on.
  const env = Object.entries(process.env).filter(([name]) => /^(SESSILE|PATH|HOME)/.test(name));
  return { command: process.env.SESSILE, args: ['mcp'], env: Object.fromEntries(env) };
}

function run(command, more = {}) {
  return { name: 'runtime', arguments: { action: 'exec', command, ...more } };
}

async function until(what, look) {
  const deadline = Date.now() + 40_000;
  while (!(await look())) {
    assert(Date.now() < deadline, `waited in vain for ${what}`);
    await pause(5);
  }
}

async function use(client) {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), ['runtime']);
  assert.equal(tools[0].annotations.destructiveHint, true);
  await client.callTool(run('x=41'));
  const answer = await client.callTool(run('echo $((x+1))'));
  assert(!answer.isError);
  assert(answer.content[0].text.endsWith('stdout:\n42'), answer.content[0].text);
  assert.equal(answer.structuredContent.stdout, '42\n');
  const failed = await client.callTool(run('exit 3'));
  assert(failed.isError && failed.structuredContent.exitCode === 3);
  const wrong = await client.callTool({ name: 'runtime', arguments: { action: 'jump' } });
  assert(wrong.isError && wrong.content[0].text.includes('Must be one of'));
}

/** A cancelled call, whose run is interrupted by it. */
async function cancel(client, call) {
  const stop = new AbortController();
  const waiting = call(client, run('mkfifo gate; echo >begun; cat gate; echo over', { timeout_ms: 0 }), {
    signal: stop.signal,
  });
  await until('the run', () => existsSync('begun'));
  stop.abort();
  await assert.rejects(waiting);
  // It waits for its turn, so the other has ended then.
  await client.callTool(run('echo next'));
  const history = await client.callTool({ name: 'runtime', arguments: { action: 'history' } });
  const codes = history.structuredContent.history.map((run) => run.exitCode);
  assert.equal(codes.at(-2), 130, JSON.stringify(codes));
}

export async function main(connect, call) {
  const first = await connect();
  await use(first);
  await cancel(first, call);
  await first.close();
  // Another client, which finds what the first one left.
  const second = await connect();
  const answer = await second.callTool(run('echo $x'));
  assert.equal(answer.structuredContent.stdout, '41\n');
  await second.close();
  console.log('ok');
}

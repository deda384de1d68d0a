'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const { test } = require('./harness.js');

const HARM = {
  'patched globals': 'JSON.parse = JSON.stringify = () => "{}"; Array.prototype.push = String.prototype.slice = String.prototype.indexOf = () => 0; Promise.prototype.then = () => {}; Array.prototype.toJSON = () => "no"; 0',
  'deleted globals': 'delete globalThis.JSON; delete globalThis.Promise; delete globalThis.Buffer; delete globalThis.console; delete globalThis.setImmediate; 0',
  'closed standard descriptors': 'for (const fd of [0, 1, 2]) fs.closeSync(fd)',
  'every descriptor closed': 'for (let fd = 0; fd < 64; fd++) try { fs.closeSync(fd) } catch {}',
  'descriptor 1 on a file of its own': 'fs.closeSync(1); fs.openSync("/dev/zero", "r+")',
  'no listeners': 'process.removeAllListeners(); 0',
  'a handler for uncaught errors': 'process.on("uncaughtException", () => {}); setTimeout(() => { throw new Error("x") }, 0); await new Promise((r) => setTimeout(r, 5)); 0',
  'a prepareStackTrace of its own': 'Error.prepareStackTrace = (_, sites) => sites; Error.stackTraceLimit = 0; null.x',
  'an empty require.cache': 'for (const k in require.cache) delete require.cache[k]; 0',
  'a patched process.stdout.write': 'const w = process.stdout.write; process.stdout.write = function (...a) { return w.apply(this, a) }; 0',
  'a removed working directory': 'const d = fs.mkdtempSync("/tmp/gone-"); process.chdir(d); fs.rmdirSync(d)',
  'thrown proxies and null': 'Promise.reject(new Proxy({}, { get() { throw 1 } })); throw null',
  'frozen things': 'Object.freeze(Object.prototype); Object.freeze(Error); Object.freeze(process); 0',
  'SIGINT listeners': 'process.on("SIGINT", () => {}); process.removeAllListeners("SIGINT"); 0',
};

for (const [name, code] of Object.entries(HARM)) {
  test(`a kernel survives ${name}`, async (kernel) => {
    await kernel.run(code);
    const done = await kernel.run('process.stdout.write("out"); process.stderr.write("err"); 6 * 7');
    assert.equal(done.exitCode, 0);
    assert.equal(done.result, '42');
    assert.equal(done.stdout, 'out');
    assert.equal(done.stderr, 'err');
    assert.equal((await kernel.run('let z = 1; await z')).result, '1');
    assert.match((await kernel.run('throw new Error("seen")')).stderr, /seen/);
    assert.ok((await kernel.state()).working_dir);
  });
}

test('workers and forked children do not answer for the kernel', async (kernel) => {
  const done = await kernel.run(`
    const { Worker } = require('worker_threads');
    await new Promise((r) => new Worker('console.log("worker"); process.exit(4)', { eval: true }).on('exit', r));
    fs.writeFileSync('c.js', 'console.log("fork", process.execArgv.length); process.exit(5)');
    await new Promise((r) => require('child_process').fork('./c.js').on('exit', r))`);
  assert.equal(done.result, '5');
  assert.match(done.stdout, /worker/);
  assert.match(done.stdout, /fork 0/);
});

test('the kernel ends when told, with exit handlers run', async (kernel) => {
  await kernel.run('process.on("exit", () => fs.writeFileSync("bye", "x")); setInterval(() => {}, 1000); 0');
  kernel.tell({ op: 'exit' });
  assert.deepEqual(await kernel.exited, [0, null]);
  assert.ok(fs.existsSync(`${kernel.cwd}/bye`));
});

test('a violent death is a death', async (kernel) => {
  kernel.begin('process.kill(process.pid, "SIGKILL")');
  assert.deepEqual(await kernel.exited, [null, 'SIGKILL']);
});

test('many runs do not grow the kernel', async (kernel) => {
  for (let i = 0; i < 300; i++) assert.equal((await kernel.run(`const v${i % 3} = ${i}; await v${i % 3}`)).result, `${i}`);
});

test('what user code finds in async resources leads nowhere', async (kernel) => {
  const done = await kernel.run(`
    const seen = [];
    const look = (thing, depth) => {
      if (depth === 0 || thing === null || typeof thing !== 'object') return;
      for (const key of Reflect.ownKeys(thing)) {
        const value = (() => { try { return thing[key] } catch {} })();
        if (String(key) === 'outcome' || String(key) === 'exit_code' || value === 'secret1') seen.push(String(key));
        look(value, depth - 1);
      }
    };
    const socket = require('net').createServer();
    const { executionAsyncResource, AsyncResource } = require('async_hooks');
    for (const thing of [socket, socket.listen(0), socket._handle, new AsyncResource('x'), executionAsyncResource()]) look(thing, 5);
    for (const thing of process._getActiveHandles()) {
      look(thing, 4);
      for (const key of Reflect.ownKeys(thing)) if (thing[key] instanceof Uint8Array && Buffer.from(thing[key]).includes('secret1')) seen.push('memory');
    }
    socket.close();
    seen.join()`);
  assert.equal(done.result, "''");
  assert.equal(done.exitCode, 0);
});

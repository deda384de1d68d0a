'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('./harness.js');

const NEVER = 'await new Promise(() => {})';
const ENDLESS = {
  'a loop': 'console.log("go"); while (true) {}',
  'a loop that catches everything': 'console.log("go"); for (;;) try { while (true) {} } catch {} finally {}',
  'a promise that never settles': `console.log("go"); ${NEVER}`,
  'a loop after await': 'await 0; console.log("go"); for (;;);',
  'a loop in a timer': `setTimeout(() => { console.log("go"); while (true) {} }, 1); ${NEVER}`,
  'a loop in a tick': `process.nextTick(() => { console.log("go"); while (true) {} }); ${NEVER}`,
  'a loop in an immediate': `setImmediate(() => { console.log("go"); while (true) {} }); ${NEVER}`,
  'a loop in an I/O callback': `fs.readFile("/dev/null", () => { console.log("go"); while (true) {} }); ${NEVER}`,
  'endless microtasks': `console.log("go"); (async () => { for (;;) await null })(); ${NEVER}`,
  'a regular expression that backtracks': 'console.log("go"); /^(a+)+$/.test("a".repeat(45) + "b")',
  'Atomics.wait': 'console.log("go"); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)',
  'a result that cannot be shown': 'console.log("go"); ({ [Symbol.for("nodejs.util.inspect.custom")]() { while (true); } })',
  'a child that is waited for': 'require("child_process").execSync("echo go; kill -INT $PPID; sleep 0.1", { stdio: "inherit" }); while (true) {}',
};

for (const [name, code] of Object.entries(ENDLESS)) {
  test(`${name} is interrupted, and state and timers live on`, async (kernel) => {
    await kernel.run('let kept = 42, n = 0; setInterval(() => n++, 1); 0');
    const run = kernel.begin(code);
    await run.stdout.prints('go');
    const done = await kernel.interruptUntilDone(run);
    assert.equal(done.exitCode, 130);
    assert.equal(done.error.type, 'Interrupted');
    const after = await kernel.run('n = 0; while (n < 2) await new Promise((r) => setTimeout(r, 1)); console.log("out"); kept');
    assert.equal(after.stdout, 'out\n');
    assert.equal(after.result, '42');
  });
}

test('SIGINT hits nobody when the kernel is idle or the run it is for has ended', async (kernel) => {
  kernel.interrupt();
  assert.equal((await kernel.run('1')).result, '1');
  fs.writeFileSync(path.join(kernel.dir, 'interrupt'), '1');
  for (let i = 0; i < 50; i++) {
    kernel.interrupt();
    assert.equal((await kernel.run('let s = 0; for (let i = 0; i < 1e5; i++) s += i; await 0; 2')).result, '2');
  }
});

test('a busy callback of an earlier run is ended too', async (kernel) => {
  const first = await kernel.run('setTimeout(() => { console.log("stuck"); while (true) {} }, 1); 0');
  await first.run.stdout.prints('stuck');
  const done = await kernel.interruptUntilDone(kernel.begin(NEVER));
  assert.equal(done.error.type, 'Interrupted');
  assert.equal((await kernel.run('3')).result, '3');
});

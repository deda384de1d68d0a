'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { createHash } = require('node:crypto');
const { test, mkfifo } = require('./harness.js');

const openPipes = (kernel) =>
  fs.readdirSync(`/proc/${kernel.process.pid}/fd`).filter((fd) => {
    try {
      return /\.(out|err)$/.test(fs.readlinkSync(`/proc/${kernel.process.pid}/fd/${fd}`));
    } catch {
      return false;
    }
  }).length;

test('every way to print reaches the run, in order and byte for byte', async (kernel) => {
  const done = await kernel.run(`
    const cp = require('child_process');
    console.log('a'); process.stdout.write('b\\n'); fs.writeSync(1, 'c\\n');
    cp.execSync('echo d', { stdio: 'inherit' }); cp.spawnSync('echo', ['e'], { stdio: [0, 1, 2] });
    cp.spawnSync('echo', ['f'], { stdio: ['ignore', process.stdout, process.stderr] });
    await new Promise((r) => cp.spawn('sh', ['-c', 'echo g; echo G >&2'], { stdio: 'inherit' }).on('close', r));
    process.stdout.write(Buffer.from([0, 255, 10])); process.stderr.write('err\\n'); console.error('%d', 5);
    await new Promise((r) => fs.createWriteStream(null, { fd: 1, autoClose: false }).end('h\\n', r));
    await new Promise((r) => process.stdout.write('i', r));`);
  assert.equal(done.bytes.toString('latin1'), 'a\nb\nc\nd\ne\nf\ng\n\0\xff\nh\ni');
  assert.equal(done.stderr, 'G\nerr\n5\n');
});

test('a hundred megabytes arrive whole', async (kernel) => {
  const done = await kernel.run('const line = "x".repeat(99) + "\\n"; for (let i = 0; i < 1000; i++) process.stdout.write(line.repeat(1000)); 0');
  assert.equal(done.bytes.length, 100_000_000);
  const expected = createHash('sha1').update(`${'x'.repeat(99)}\n`.repeat(1_000_000)).digest('hex');
  assert.equal(createHash('sha1').update(done.bytes).digest('hex'), expected);
});

test('standard streams look right and cannot be used up', async (kernel) => {
  const seen = await kernel.run('const o = process.stdout; [o.fd, o.isTTY, o.columns, o.writable, process.stderr.fd, process.stdin.fd]');
  assert.equal(seen.result, '[ 1, undefined, undefined, true, 2, 0 ]');
  const ended = await kernel.run('process.stdout.on("finish", () => process.stderr.write("finish")); await new Promise((r) => process.stdout.end("bye", r))');
  assert.equal(ended.stdout, 'bye');
  assert.equal(ended.stderr, 'finish');
  await kernel.run('process.stdout.destroy(); process.stderr.destroy()');
  assert.equal((await kernel.run('console.log(1)')).stdout, '1\n');
  const piped = await kernel.run('require("stream").Readable.from(["x", "y"]).pipe(process.stdout); await require("stream/promises").finished(require("stream").Readable.from([]).resume()); await new Promise(setImmediate)');
  assert.equal(piped.stdout, 'xy');
});

test('standard input is empty, a file or a pipe', async (kernel) => {
  const all = 'let all = ""; for await (const c of process.stdin) all += c; all';
  assert.equal((await kernel.run(all)).result, "''");
  assert.equal((await kernel.run(all, { stdin: 'héllo' })).result, "'héllo'");
  assert.equal((await kernel.run('fs.readFileSync(0, "utf8")', { stdin: 'zero' })).result, "'zero'");
  assert.equal((await kernel.run('fs.readFileSync("/dev/stdin", "utf8")', { stdin: 'dev' })).result, "'dev'");
  assert.equal((await kernel.run('require("child_process").execSync("cat", { stdio: [0, "pipe", 2] }).toString()', { stdin: 'cat' })).result, "'cat'");
  assert.equal((await kernel.run('fs.readFileSync(0, "utf8")')).result, "''");
  const fifo = path.join(kernel.dir, 'fifo');
  mkfifo(fifo);
  const writer = fs.openSync(fifo, 'r+');
  const run = kernel.begin('process.stdin.once("data", (d) => console.log("got " + d)); await new Promise((r) => process.stdin.on("end", r)); "end"', { stdinPath: fifo });
  fs.writeSync(writer, 'one');
  await run.stdout.prints('got one');
  fs.closeSync(writer);
  assert.equal((await run.done).result, "'end'");
  assert.equal((await kernel.run(all)).result, "''");
});

test('what a run left behind prints to that run', async (kernel) => {
  const first = await kernel.run(`
    const emitter = new (require('events'))(); let tick = 0;
    var timer = setInterval(() => { if (tick > 0) { tick--; console.log('late'); fs.writeSync(1, 'raw'); require('child_process').spawnSync('printf', ['child'], { stdio: 'inherit' }); console.error('oops') } }, 1); 0`);
  const second = await kernel.run('tick = 1; while (tick) await new Promise((r) => setTimeout(r, 1)); console.log("mine")');
  assert.equal(second.stdout, 'mine\n');
  assert.equal(await first.run.stdout.prints('child'), 'late\nrawchild');
  assert.equal(await first.run.stderr.prints('oops\n'), 'oops\n');
  await kernel.run('clearInterval(timer)');
  await first.run.stdout.closed;
});

test('pipes of runs that left nothing are closed, and of those that did, bounded', async (kernel) => {
  const done = await kernel.run('1');
  await Promise.all([done.run.stdout.closed, done.run.stderr.closed]);
  await kernel.run('setInterval(() => {}, 1e6); 0');
  for (let i = 0; i < 90; i++) await kernel.run('0');
  assert.ok(openPipes(kernel) <= 2 * 66, `${openPipes(kernel)} pipes`);
});

test('the pipes of a first run are let go when the watcher is up', async (kernel) => {
  const first = await kernel.run('console.log(1)');
  const second = await kernel.run('console.log(2)');
  await Promise.all([first.run.stdout.closed, first.run.stderr.closed]);
  assert.deepEqual([first.stdout, second.stdout], ['1\n', '2\n']);
  assert.deepEqual([first.notes, second.notes], [[], []]);
});

test('a run that left nothing has let go of its pipes when it is reported', async (kernel) => {
  const first = await kernel.run('0');
  await Promise.all([first.run.stdout.closed, first.run.stderr.closed]);
  await kernel.run('console.log(1)');
  assert.equal(openPipes(kernel), 0);
  const standard = [0, 1, 2].map((fd) => fs.readlinkSync(`/proc/${kernel.process.pid}/fd/${fd}`));
  assert.deepEqual(standard, ['/dev/null', '/dev/null', '/dev/null']);
});

test('a background child does not delay the answer', async (kernel) => {
  const done = await kernel.run('var child = require("child_process").spawn("sh", ["-c", "read x; echo $x"], { stdio: ["pipe", "inherit", "inherit"] }); 0');
  assert.equal(done.exitCode, 0);
  await kernel.run('child.stdin.end("released\\n")');
  await done.run.stdout.prints('released');
});

test('environment given with a run is gone after it', async (kernel) => {
  const code = '[process.env.A, process.env.B]';
  await kernel.run('process.env.A = "mine"');
  assert.equal((await kernel.run(code, { env: { A: 'x', B: 'y' } })).result, "[ 'x', 'y' ]");
  assert.equal((await kernel.run(code)).result, "[ 'mine', undefined ]");
});

'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('./harness.js');

// Each step: [code, result] on one kernel.
const steps = (list) => async (kernel) => {
  for (const [code, result] of list) {
    const done = await kernel.run(code);
    assert.equal(done.stderr, '', code);
    assert.equal(done.exitCode, 0, code);
    assert.equal(done.result, result, code);
  }
};

test('the value of the last expression is the result', steps([
  ['1 + 1', '2'],
  ['"a"', "'a'"],
  ['({ a: [1, { b: 2 }] })', '{ a: [ 1, { b: 2 } ] }'],
  ['{ a: 1, b: 2 }', '{ a: 1, b: 2 }'],
  ['{ let q = 1; q + 1 }', '2'],
  ['undefined', null],
  ['', null],
  ['let x = 1', null],
  ['if (true) { 5 }', '5'],
  ['await Promise.resolve(7)', '7'],
]));

test('let, const and class persist and may be declared again as anything', steps([
  ['const a = 1', null],
  ['a', '1'],
  ['let a = 2; a++; a', '3'],
  ['const a = 4; a', '4'],
  ['class a { static v = 5 }; a.v', '5'],
  ['var a = 6; a', '6'],
  ['function a() { return 7 } a()', '7'],
  ['function b() { return 1 } b()', '1'],
  ['const b = () => 2; b()', '2'],
  ['class b { static v = 3 }\n[b.v][0]', '3'],
  ['var c = 1; let d = 2', null],
  ['let c = 3, e = 4; [c, e]', '[ 3, 4 ]'],
  ['for (var d = 0; d < 2; d++); const { c: f, ...g } = { c: 1, h: 2 }; [f, g]', '[ 1, { h: 2 } ]'],
]));

test('strings, templates, regular expressions and comments are never changed', steps([
  ['const s = "const x; import(1)"; s', "'const x; import(1)'"],
  ['const t = `const ${"import(2)"} /* const */`; t', "'const import(2) /* const */'"],
  ['const r = /const ["\'`] import\\(/; r.source', "'const [\"\\'`] import\\\\('"],
  ['// const "\n/* import("x") ` */ const u = 4 / 2 / 1; u', '2'],
  ['class W { import(x) { return x } }; const w = new W(); w.import("import(3)")', "'import(3)'"],
  ['const o = { import(x) { return x } }; o . import(4)', '4'],
  ['`${await import("node:path").then((p) => `${p.sep}import("y")`)}`', "'/import(\"y\")'"],
]));

test('import and require resolve from the working directory', async (kernel) => {
  const dep = path.join(kernel.cwd, 'node_modules', 'dual');
  fs.mkdirSync(dep, { recursive: true });
  fs.writeFileSync(path.join(dep, 'package.json'), '{"exports":{"import":"./i.mjs","require":"./r.cjs"}}');
  fs.writeFileSync(path.join(dep, 'i.mjs'), 'export default "esm"; export const named = 1;');
  fs.writeFileSync(path.join(dep, 'r.cjs'), 'module.exports = "cjs"');
  fs.writeFileSync(path.join(kernel.cwd, 'local.mjs'), 'export const here = import.meta.url.endsWith("local.mjs")');
  const code = 'import kind, { named as n } from "dual"; import * as local from "./local.mjs"\nimport "dual";\n[kind, n, local.here, require("dual")]';
  assert.equal((await kernel.run(code)).result, "[ 'esm', 1, true, 'cjs' ]");
  fs.mkdirSync(path.join(kernel.cwd, 'sub'));
  fs.writeFileSync(path.join(kernel.cwd, 'sub', 'local.mjs'), 'export const here = "sub"');
  assert.equal((await kernel.run('process.chdir("sub"); (await import("./local.mjs")).here')).result, "'sub'");
  assert.equal((await kernel.run('const fs2 = await import("node:fs"); typeof fs2.readFileSync')).result, "'function'");
  assert.deepEqual((await kernel.state()).imports.filter((name) => !name.startsWith('/')), ['dual', 'node:fs']);
});

test('a missing export and an export declaration are clear errors', async (kernel) => {
  assert.match((await kernel.run('import { nope } from "node:fs"')).error.message, /does not provide an export named 'nope'/);
  assert.match((await kernel.run('export const x = 1')).error.message, /a run is not a module/);
  assert.equal((await kernel.run('1')).result, '1');
});

test('an error has the user\'s line and no frame of the driver', async (kernel) => {
  for (const tail of ['', '\nawait 0', '\nlet z']) {
    const done = await kernel.run(`function f() {\n  throw new TypeError('bad', { cause: 5 })\n}\nf()${tail}`);
    assert.equal(done.exitCode, 1);
    assert.deepEqual(done.error, { type: 'TypeError', message: 'bad' });
    assert.match(done.stderr, new RegExp(`^<run-${done.run.id}>:2\n  throw new TypeError\\('bad', { cause: 5 }\\)\n        \\^\n\nTypeError: bad\n    at f \\(<run-${done.run.id}>:2:9\\)`));
    assert.match(done.stderr, /\[cause\]: 5/);
    assert.doesNotMatch(done.stderr, /sessile|node:inspector|node:vm|processTicks/);
  }
});

test('a syntax error points at the place', async (kernel) => {
  const done = await kernel.run('let a = 1\nlet b = = 2');
  assert.equal(done.error.type, 'SyntaxError');
  assert.equal(done.stderr, "<run-1>:2\nlet b = = 2\n        ^\n\nSyntaxError: Unexpected token '='\n");
  assert.equal((await kernel.run('let b = 3; b')).result, '3');
});

test('rejections and errors in callbacks fail the run that is current', async (kernel) => {
  for (const code of [
    'Promise.reject(new RangeError("x")); 1',
    'queueMicrotask(() => { throw new RangeError("x") }); 1',
    'process.nextTick(() => { throw new RangeError("x") }); 1',
    'setTimeout(() => { throw new RangeError("x") }, 1); await new Promise(() => {})',
    'await (async () => { throw new RangeError("x") })()',
  ]) {
    const done = await kernel.run(code);
    assert.equal(done.exitCode, 1, code);
    assert.deepEqual(done.error, { type: 'RangeError', message: 'x' }, code);
    assert.match(done.stderr, /RangeError: x/);
  }
  assert.equal((await kernel.run('throw 5')).stderr, 'Uncaught 5\n');
  assert.equal((await kernel.run('1')).exitCode, 0);
});

test('an error in the background is printed to its run and kills nothing', async (kernel) => {
  const first = await kernel.run('let go; new Promise((r) => { go = r }).then(() => setTimeout(() => { throw new Error("late") }, 1)); setInterval(() => {}, 1000); 0');
  const second = await kernel.run('go(); await new Promise((r) => setTimeout(r, 20)); 2');
  assert.equal(second.exitCode, 0);
  assert.equal(second.stderr, '');
  assert.match(await first.run.stderr.prints('late'), /Error: late/);
});

test('process.exit ends the run at once, and only the run', async (kernel) => {
  for (const code of [
    'let k = 1; try { process.exit(3) } catch { } finally { console.log("no") } console.log("no")',
    'await 0; try { process.exit(3) } finally { console.log("no") }',
    'setTimeout(() => process.exit(3), 1); await new Promise(() => {})',
    'process.exitCode = 3',
  ]) {
    const done = await kernel.run(code);
    assert.equal(done.exitCode, 3, code);
    assert.equal(done.stdout, '', code);
    assert.equal(done.error, null);
  }
  assert.equal((await kernel.run('k')).result, '1');
  assert.equal((await kernel.run('process.exit()')).exitCode, 0);
});

test('state tells names without calling anything of the user\'s', async (kernel) => {
  await kernel.run(`
    let calls = 0; const count = () => { calls++; return 'x' };
    var v = [1, 2]; function f(a, b = 1) {} const g = async (x) => x; class K {}
    const getter = { get a() { return count() } };
    const custom = { [Symbol.for('nodejs.util.inspect.custom')]: count };
    const tagged = { get [Symbol.toStringTag]() { return count() } };
    const proxy = new Proxy({}, { get: count, ownKeys: () => { count(); return [] }, getPrototypeOf: () => { count(); return null } });
    const huge = Object.fromEntries(Array.from({ length: 1e5 }, (_, i) => ['k' + i, i])); const long = 'y'.repeat(1e6);
    require('os'); try { require('no-such-module') } catch {}`);
  const state = await kernel.state();
  const variables = Object.fromEntries(state.variables.map((each) => [each.name, each]));
  assert.deepEqual(variables.v, { name: 'v', type: 'Array', repr: '[ 1, 2 ]' });
  assert.equal(variables.proxy.type, 'Proxy');
  assert.equal(variables.getter.repr, '{ a: [Getter] }');
  for (const each of state.variables) assert.ok(each.repr.length < 250, each.name);
  assert.deepEqual(state.functions.map((each) => each.signature).sort(), ['count()', 'f(a, b = 1)', 'g(x)']);
  assert.deepEqual(state.classes, ['K']);
  assert.deepEqual(state.imports, ['node:os']);
  assert.equal(state.working_dir, kernel.cwd);
  assert.equal(state.env_vars.PATH, process.env.PATH);
  assert.equal((await kernel.run('calls')).result, '0');
});

test('a result is cut at a mebibyte, and a note says so', async (kernel) => {
  const done = await kernel.run('Array.from({ length: 30 }, () => "x".repeat(1e5))');
  assert.equal(done.result.length, 1 << 20);
  assert.match(done.notes[0], /cut/);
});

test('nothing of the driver shows', steps([
  ['process.argv.length', '1'],
  ['process.execArgv', '[]'],
  ['[require.main, Object.keys(require.cache).length, process.mainModule]', '[ undefined, 0, undefined ]'],
  ['[typeof __filename, typeof __dirname]', "[ 'undefined', 'undefined' ]"],
  ['process.listenerCount("uncaughtException")', '0'],
]));

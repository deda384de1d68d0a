'use strict';
// What user code tries in one run, so that a later run is answered wrongly.
const assert = require('node:assert/strict');
const { test } = require('./harness.js');

// Each puts what it has got hold of into `got`.
const ATTEMPTS = {
  'the modules below require.main': `
    const main = Object.getPrototypeOf(module).require.main ?? require.main ?? process.mainModule;
    for (const child of main?.children ?? []) got.push(child.filename)`,
  'the modules in require.cache': 'got.push(...Object.keys(require.cache), ...Object.keys(module.constructor._pathCache).filter((k) => k.includes(".js")))',
  'the parents of its module': 'if (module.parent || module.children.length > 0) got.push("parent")',
  'the handles of the event loop': `
    for (const handle of process._getActiveHandles()) for (const key of Reflect.ownKeys(handle)) {
      if (typeof handle[key] === 'function') { got.push(String(key)); handle[key] = () => true }
    }`,
  'the requests of the event loop': 'got.push(...process._getActiveRequests())',
  'the resource of its own execution': `
    const { callback, args } = require('async_hooks').executionAsyncResource();
    for (const arg of args ?? []) { got.push(typeof arg); if (typeof arg === 'function') arg({ value: 'forged' }) }`,
  'the resources of later executions': `
    require('async_hooks').createHook({ init(id, type, trigger, resource) {
      for (const arg of resource.args ?? []) if (typeof arg === 'function') { got.push(type); arg({ value: 'forged' }) }
    } }).enable(); 0`,
  'functions and receivers in stack frames': `
    Error.prepareStackTrace = (_, sites) => {
      for (const site of sites) if (String(site.getFileName()).includes('sessile')) got.push(site.getThis(), site.getFunction());
      got = got.filter((x) => x !== undefined); return '';
    };
    new Error().stack;
    shown = { [Symbol.for('nodejs.util.inspect.custom')]() { new Error().stack; return 'shown' } }`,
  'the globals without a name of their own': `
    for (const key of Reflect.ownKeys(globalThis)) if (/^\\u200c/.test(String(key))) {
      for (let id = 0; id < 9; id++) try { globalThis[key](id) } catch {}
      setInterval(() => { for (let id = 0; id < 9; id++) globalThis[key](id) }, 0).unref();
    }`,
  'how text becomes bytes': `
    const write = Buffer.prototype.utf8Write;
    Buffer.prototype.utf8Write = function (text, ...rest) {
      if (String(text).includes('secret')) { got.push(text); text = text.replace('"exit_code":3', '"exit_code":0') }
      return write.call(this, text, ...rest);
    }; 0`,
  'how bytes become text': `
    for (const name of ['utf8Slice', 'latin1Slice', 'toString']) {
      const slice = Buffer.prototype[name];
      Buffer.prototype[name] = function (...args) { const text = slice.apply(this, args); if (text.includes('secret')) got.push(name); return text };
    }
    const decode = require('string_decoder').StringDecoder.prototype;
    const { write } = decode;
    decode.write = function (bytes) { const text = write.call(this, bytes); if (text.includes('secret')) got.push('write'); return text }; 0`,
  'the accessors of typed arrays': `
    const proto = Object.getPrototypeOf(Uint8Array.prototype);
    for (const name of ['buffer', 'byteLength', 'byteOffset', 'length']) {
      const { get } = Object.getOwnPropertyDescriptor(proto, name);
      const size = Object.getOwnPropertyDescriptor(proto, 'byteLength').get;
      Object.defineProperty(proto, name, { configurable: true, get() {
        for (let i = 0; i < 99; i++) if (this[i] === 115 && this[i + 1] === 101 && this[i + 2] === 99 && this[i + 3] === 114) got.push(name);
        return get.call(this);
      } });
    } 0`,
  'the binding below fs': `
    const binding = process.binding('fs');
    for (const name of ['writeString', 'writeBuffer']) {
      const write = binding[name];
      binding[name] = (fd, data, ...rest) => { const text = String(data); if (text.includes('secret')) got.push(name); return write(fd, data, ...rest) };
    } 0`,
  'the functions of fs': `
    for (const name of ['writeSync', 'readFileSync', 'openSync', 'readSync', 'closeSync', 'fstatSync']) {
      const own = fs[name];
      fs[name] = (...args) => { if (args.some((a) => String(a).includes('secret'))) got.push(name); return own(...args) };
    } 0`,
  'setters on prototypes': `
    for (const key of ['secret', 'exit_code', 'outcome', 'code', 'kind', '0', '1']) for (const proto of [Object.prototype, Array.prototype]) {
      Object.defineProperty(proto, key, { configurable: true, get() {}, set(v) {
        if (String(v?.secret ?? v).includes('secret')) got.push(key);
        Object.defineProperty(this, key, { value: v, writable: true, configurable: true, enumerable: true });
      } });
    } 0`,
  'properties of every object': `
    const keys = ['thrown', 'syntax', 'exceptionDetails'];
    for (const key of keys) Object.defineProperty(Object.prototype, key, { value: { forged: true }, configurable: true, writable: true }); 0`,
  'the kinds that promises make': 'Object.defineProperty(Promise, Symbol.species, { get() { throw new Error("species") } }); Promise.prototype.constructor = null; 0',
  'how lists are walked': 'Array.prototype[Symbol.iterator] = function* () {}; Map.prototype.get = Set.prototype.has = () => { throw 1 }; 0',
  'how functions are called': 'Function.prototype.call = Function.prototype.bind = () => 0; Reflect.apply = () => 0; 0',
  'events of every emitter': `
    const emit = require('events').prototype.emit;
    require('events').prototype.emit = function (name, ...rest) { if (this.constructor.name === 'Worker') got.push(name); return emit.call(this, name, ...rest) }; 0`,
  'what Node loads for us': `
    const load = module.constructor.prototype.require;
    module.constructor.prototype.require = function (name) { if (this !== module) got.push(name); return load.call(this, name) }; 0`,
};

const TEXTS = {
  'a plain text': 'process.exitCode = 3; "ok"',
  'a text in REPL mode': 'let z = await 1; process.exitCode = 3; "ok"',
  'a text that is not ASCII': 'process.exitCode = 3; "ökay ✓".length === 6 ? "ok" : "ö"',
};

for (const [what, code] of Object.entries(ATTEMPTS)) {
  test(`a later run is answered truly after a look for ${what}`, async (kernel) => {
    await kernel.run('got = []; 0');
    const first = await kernel.run(code);
    assert.equal(first.error, null, first.stderr);
    for (const [kind, text] of Object.entries(TEXTS)) {
      const done = await kernel.run(text, { env: { GIVEN: 'x' } });
      assert.equal(done.exitCode, 3, kind);
      assert.equal(done.result, "'ok'", kind);
      assert.equal(done.error, null, kind);
    }
    assert.equal((await kernel.run('got.length === 0 || String(got)')).result, 'true');
    assert.equal((await kernel.run('throw new TypeError("told")')).error?.message, 'told');
  });
}

for (const [kind, text] of Object.entries({
  'a plain text': 'n = (globalThis.n ?? 0) + 1; CALL; n',
  'a text in REPL mode': 'let a = await 1; n = (globalThis.n ?? 0) + 1; CALL; n',
  'a text in REPL mode that does not wait': 'let b = 1; n = (globalThis.n ?? 0) + 1; CALL; n',
})) {
  test(`${kind} runs once, whatever it calls`, async (kernel) => {
    const call = 'try { require("async_hooks").executionAsyncResource().callback?.() } catch (e) { console.log(e.stack) }';
    const done = await kernel.run(text.replace('CALL', call));
    assert.equal(done.result, '1', done.stdout + done.stderr);
    assert.doesNotMatch(done.stdout, /evaluate|\.js/);
    assert.equal((await kernel.run('let c = n; c')).result, '1');
  });
}

test('a run is interrupted although user code knows what asks for it', async (kernel) => {
  await kernel.run(`for (const key of Reflect.ownKeys(globalThis)) if (String(key).includes('sessile')) try { globalThis[key](2, '') } catch {}`);
  const run = kernel.begin('console.log("in"); for (;;);');
  await run.stdout.prints('in');
  assert.equal((await kernel.interruptUntilDone(run)).exitCode, 130);
});

test('a program that mocks the file system does not mock it for the kernel', async (kernel) => {
  await kernel.run('process.binding("fs").open = () => { throw new Error("mocked") }; 0');
  const done = await kernel.run('process.exitCode = 4; try { fs.openSync("/dev/null") } catch (e) { console.log(e.message) }');
  assert.equal(done.exitCode, 4);
  assert.equal(done.stdout, 'mocked\n');
});

//! What a Node kernel's dump carries, what it leaves and why, on a real Node.

mod kernel;

use kernel::{Carried, Kernel};
use serde_json::json;
use sessile_testkit::until;
use std::os::unix::fs::PermissionsExt;

/// Runs `setup`, carries it all over, and returns the new kernel, and the old
/// one, which has the directory that both work in.
#[track_caller]
fn carried(setup: &[&str]) -> (Kernel, Kernel) {
    let mut kernel = Kernel::start();
    for text in setup {
        kernel.run(text);
    }
    let path = kernel.file("dump");
    let dumped = kernel.dump(&path).whole();
    let mut next = Kernel::start();
    let loaded = next.load(&path).whole();
    assert_eq!(loaded.count(), dumped.count());
    // A dump of what was loaded is the same, byte for byte.
    let again = next.file("again");
    next.dump(&again).whole();
    assert!(std::fs::read(path).unwrap() == std::fs::read(again).unwrap(), "another dump");
    (next, kernel)
}

/// After `setup` has been carried over, each of `checks` is true.
#[track_caller]
fn survives(setup: &[&str], checks: &[&str]) {
    let (mut kernel, _old) = carried(setup);
    for check in checks {
        assert_eq!(kernel.run(check), "true", "{check}");
    }
}

fn dumped(setup: &[&str]) -> (Kernel, Carried) {
    let mut kernel = Kernel::start();
    for text in setup {
        kernel.run(text);
    }
    let path = kernel.file("dump");
    let done = kernel.dump(&path);
    (kernel, done)
}

#[test]
fn primitives_survive() {
    survives(
        &["let n = 42, neg = -7, half = 0.5, big = 123456789012345678901234567890n, low = -1n, zero = -0, nan = NaN, inf = -Infinity;
           let none, nil = null, yes = true, no = false, far = 2 ** 53, empty = '';
           let ascii = 'x'.repeat(100000), text = 'žluťoučký 🐎', lone = 'a\\ud800b', long = 'é'.repeat(50000)"],
        &[
            "n === 42 && neg === -7 && half === 0.5 && far === 2 ** 53",
            "big === 123456789012345678901234567890n && low === -1n",
            "Object.is(zero, -0) && Number.isNaN(nan) && inf === -Infinity",
            "none === undefined && nil === null && yes === true && no === false && empty === ''",
            "ascii === 'x'.repeat(100000) && text === 'žluťoučký 🐎' && lone === 'a\\ud800b' && long === 'é'.repeat(50000)",
        ],
    );
}

#[test]
fn objects_and_arrays_survive_with_their_order_holes_and_circles() {
    survives(
        &["let o = {b: 1, a: {c: [1, , 3]}, 7: 'seven', 'not a name': 2, ['__proto__']: 5}; o.self = o;
           let extra = Object.assign([1, 2], {note: 'x'}), bare = Object.assign(Object.create(null), {z: 1}), sparse = []; sparse[4e9] = 1;
           let deep = null; for (let i = 0; i < 100000; i++) deep = {deep};
           let many = Array.from({length: 5000}, (_, i) => i / 3); many.note = 'm'; many[Symbol.for('s')] = 1"],
        &[
            "Object.keys(o).join() === '7,b,a,not a name,__proto__,self' && o.self === o",
            "Object.getOwnPropertyDescriptor(o, '__proto__').value === 5 && Object.getPrototypeOf(o) === Object.prototype",
            "o.a.c.length === 3 && !(1 in o.a.c) && o.a.c[2] === 3",
            "extra.note === 'x' && extra.length === 2",
            "Object.getPrototypeOf(bare) === null && bare.z === 1",
            "sparse.length === 4e9 + 1 && sparse[4e9] === 1 && Object.keys(sparse).length === 1",
            "let depth = 0; for (let at = deep; at !== null; at = at.deep) depth++; depth === 100000",
            "many.length === 5000 && many[4999] === 4999 / 3 && many.note === 'm' && many[Symbol.for('s')] === 1",
        ],
    );
}

#[test]
fn what_names_share_stays_one() {
    survives(
        &[
            "let a = [], b = a; var c = {a}; d = {c}",
            "let f = () => d, g = f; a.push(g, d)",
            "const s = Symbol('s'); let keyed = {[s]: 1}, held = [s]",
        ],
        &[
            "a === b && c.a === a && d.c === c",
            "f === g && a[0] === f && a[1] === d && f() === d",
            "keyed[s] === 1 && held[0] === s && s.description === 's'",
        ],
    );
}

#[test]
fn built_in_kinds_survive() {
    survives(
        &["let map = new Map([[NaN, 1], ['k', new Map()]]), set = new Set([1, map]); map.set('self', map);
           let date = new Date(86400000), never = new Date(NaN), re = /a(?<x>b)+/giu; re.lastIndex = 3;
           let boxed = [Object(1), Object('two'), Object(false), Object(4n), Object(Symbol.for('five'))];
           let url = new URL('https://user@example.org:8080/a?b=c#d'), symbols = [Symbol.iterator, Symbol.for('r')]",
          "let bytes = Buffer.from('hello'), part = bytes.subarray(1, 3), raw = new ArrayBuffer(8), view = new DataView(raw, 2, 4), words = new Uint16Array(raw);
           words[1] = 513; let large = new Float64Array(50000).fill(1.5), longs = new BigInt64Array([-1n])"],
        &[
            "map.get(NaN) === 1 && map.get('self') === map && set.has(map) && [...map.keys()].length === 3",
            "date.getTime() === 86400000 && Number.isNaN(never.getTime()) && date instanceof Date",
            "re.source === 'a(?<x>b)+' && re.flags === 'giu' && re.lastIndex === 3",
            "boxed.every((b) => typeof b === 'object') && boxed[0] == 1 && boxed[1].length === 3 && boxed[2].valueOf() === false && boxed[3].valueOf() === 4n && boxed[4].valueOf() === Symbol.for('five')",
            "url.href === 'https://user@example.org:8080/a?b=c#d' && url instanceof URL",
            "symbols[0] === Symbol.iterator && symbols[1] === Symbol.for('r')",
            "Buffer.isBuffer(bytes) && bytes.toString() === 'hello' && (part[0] = 69, bytes.toString() === 'hEllo')",
            "words.buffer === raw && view.buffer === raw && view.byteOffset === 2 && view.getUint16(0, true) === 513",
            "large.length === 50000 && large[49999] === 1.5 && longs[0] === -1n",
        ],
    );
}

#[test]
fn errors_survive_with_their_cause_and_stack() {
    survives(
        &["class Trouble extends RangeError { constructor(m) { super(m); this.code = 7 } }
           let first = new Trouble('first'), second = new TypeError('second', {cause: first}), both = new AggregateError([first, second], 'both'); first.again = second; const stack = first.stack"],
        &[
            "first instanceof Trouble && first instanceof RangeError && first.message === 'first' && first.code === 7",
            "first.stack === stack && stack.includes('run-1')",
            "second.cause === first && second.constructor === TypeError && first.again === second",
            "both.errors[1] === second && both instanceof AggregateError && !Object.keys(both).includes('message')",
            "require('util').types.isNativeError(first)",
        ],
    );
}

#[test]
fn properties_keep_their_attributes() {
    survives(
        &["let frozen = Object.freeze({a: [1]}), sealed = Object.seal([1, 2]), closed = Object.preventExtensions({q: 1}), list = Object.freeze([1, 2]);
           let hidden = Object.defineProperty({}, 'h', {value: 1}); let made = {_x: 5, get x() { return this._x }, set x(v) { this._x = v * 2 }, m() { return 7 }, async later() { return 8 }, *each() { yield 9 }};
           Object.defineProperty(globalThis, 'fixed', {value: 3}); loose = 4; var plain = 5"],
        &[
            "Object.isFrozen(frozen) && !Object.isFrozen(frozen.a) && Object.isSealed(sealed) && !Object.isFrozen(sealed) && !Object.isExtensible(closed) && Object.isFrozen(list)",
            "hidden.h === 1 && Object.keys(hidden).length === 0",
            "made.x === 5 && (made.x = 4, made._x === 8) && made.m() === 7 && await made.later() === 8 && [...made.each()][0] === 9",
            "fixed = 9, fixed === 3 && delete loose && typeof loose === 'undefined' && !Object.getOwnPropertyDescriptor(globalThis, 'plain').configurable",
        ],
    );
}

#[test]
fn functions_survive_as_they_were_typed() {
    survives(
        &["function fact(n) { return n < 2 ? 1 : n * fact(n - 1) }
           let step = 2; let arrow = (x) => x + step, anonymous = function () { return 1 }, self = function me(n) { return n ? me(n - 1) : 'end' }, made = new Function('a', 'return a * 2');
           async function later() { return await 5 } function* each() { yield* [1, 2] } arrow.note = {k: 1}",
          "'use strict'; function strict() { return this } let pure; { let unused = 1; pure = () => step } fact.cache = new Map([[1, fact]])",
          "function Old(z) { this.z = z } Old.prototype.get = function () { return this.z }; let old = new Old(9)"],
        &[
            "fact(5) === 120 && fact.toString() === 'function fact(n) { return n < 2 ? 1 : n * fact(n - 1) }' && fact.cache.get(1) === fact",
            "arrow(1) === 3 && (step = 10, arrow(1) === 11) && arrow.name === 'arrow' && arrow.note.k === 1",
            "anonymous.name === 'anonymous' && self(3) === 'end' && made(4) === 8 && pure() === 10",
            "await later() === 5 && [...each()].length === 2 && strict() === undefined",
            "old.get() === 9 && old instanceof Old && old.constructor === Old && new Old(1).get() === 1",
            // A declaration calls whatever its name means by now.
            "let saved = fact; fact = () => 0; saved(5) === 0",
        ],
    );
}

#[test]
fn classes_and_their_instances_survive() {
    survives(
        &["const LIMIT = 5; class Point { static count = 0; static max = LIMIT; constructor(x) { this.x = x; Point.count++ } get double() { return this.x * 2 } static make(x) { return new this(x) } show() { return 'P' + this.x } }
           class Named extends Point { show() { return 'N' + super.show() } *[Symbol.iterator]() { yield this.x } }
           class Counts extends Map { total() { let t = 0; for (const n of this.values()) t += n; return t } } let Late = class {}; const Loud = (Base) => class extends Base { shout() { return this.show() + '!' } }; class Both extends Loud(Point) {} class Locked { #key = 1; open() { return this.#key } }",
          "let both = new Both(1); Point.count = 0; let p = new Point(3), n = Named.make(4), counts = new Counts([['a', 1], ['b', 2]]), show = Point.prototype.show, kinds = {Named, proto: Point.prototype}; Point.prototype.added = function () { return this.x + 1 }"],
        &[
            "p instanceof Point && p.double === 6 && p.show() === 'P3' && Point.count === 2 && Point.max === 5 && p.added() === 4",
            "n instanceof Named && n.show() === 'NP4' && [...n][0] === 4 && Object.getPrototypeOf(Named) === Point",
            "both.shout() === 'P1!' && both instanceof Point",
            "counts instanceof Counts && counts.total() === 3",
            "show === Point.prototype.show && kinds.Named === Named && kinds.proto === Point.prototype",
            "Late.name === 'Late' && new Locked().open() === 1 && new Point(0).x === 0 && Point.count === 3",
        ],
    );
}

#[test]
fn modules_are_loaded_again() {
    survives(
        &[
            "fs.writeFileSync('mine.js', 'class Shape { area() { return this.w * 2 } } module.exports = {Shape, twice: (x) => x * 2, settings: {on: false}}'); fs.writeFileSync('esm.mjs', 'export default 1; export const tool = () => \"t\"'); fs.writeFileSync('data.json', '{\"a\": 1}')",
            "require('./mine.js').settings.on = true; const f = require('fs'), {settings} = require('./mine.js'), {readFileSync, promises: {readFile}} = f, {twice, Shape} = require('./mine.js'), data = require('./data.json'); data.a = 2; let shape = Object.assign(new Shape(), {w: 4})",
            "import path2, {join as j} from 'path'; import * as ns from './esm.mjs'; import {tool} from './esm.mjs'; let tools = {tool, max: Math.max, log: console.log, all: globalThis, req: require}",
        ],
        &[
            "f === require('fs') && readFileSync === f.readFileSync && readFile === f.promises.readFile && j === path2.join",
            "twice(2) === 4 && twice === require('./mine.js').twice && shape instanceof Shape && shape.area() === 8",
            "settings.on && data.a === 2 && ns.tool === tool && tools.tool === tool && tool() === 't'",
            "tools.max === Math.max && tools.log === console.log && tools.all === globalThis && tools.req === require",
        ],
    );
}

#[test]
fn the_environment_and_the_directory_are_carried() {
    survives(
        &[
            "process.env.ADDED = 'é'; delete process.env.HOME; fs.mkdirSync('below'); process.chdir('below'); path = 'taken'; let cwd = process.cwd()",
        ],
        &[
            "process.env.ADDED === 'é' && process.env.HOME === undefined && process.cwd() === cwd && path === 'taken'",
        ],
    );
}

#[test]
fn names_may_be_declared_again_as_before() {
    let (mut kernel, _old) =
        carried(&["const c = 1; let l = 2; class K {} var v = 3; function f() {}"]);
    assert_eq!(kernel.run("const c = 2; let l = 3; class K { m() {} } var v = 4; function f() { return 5 }; c + l + v + f()"), "14");
    assert_eq!(kernel.run("let v = 6, f = 7; var c = 8; const K = 9; v + f + c + K"), "30");
}

#[test]
fn what_cannot_be_carried_is_left_by_name_with_the_reason() {
    let (mut kernel, done) = dumped(&[
        "let good = {a: 1}; const net = require('net'); let socket = new net.Socket(), config = {server: [socket], good}, outer = new Map([['c', config]]);
         let timer = setTimeout(() => {}, 1e9), promise = Promise.resolve(1), proxy = new Proxy({}, {}), weak = new WeakMap(), shared = new SharedArrayBuffer(1), ref = new WeakRef({});
         let generator = (function* () {})(), iterator = [][Symbol.iterator](), bound = good.toString.bind(good), emitter = new (require('events'))(), worker = new (require('worker_threads').Worker)('', {eval: true});
         function counter() { let n = 0; return () => ++n } let count = counter(), me = () => this; class Secret { #s = 1 } let secret = new Secret();
         let child = require('child_process').spawn('true'), stream = fs.createReadStream('/dev/null'), wasm = new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])), sup = {m() { return super.toString() }};
         Object.defineProperty(globalThis, 'lazy', {get() { return 1 }, configurable: true}); let both = [socket, good]",
    ]);
    for (name, reason) in [
        ("socket", "a socket cannot be carried"),
        ("config", "config.server[0]: a socket cannot be carried"),
        ("outer", "outer<value 0>.server[0]: a socket cannot be carried"),
        ("both", "both[0]: a socket cannot be carried"),
        ("timer", "a timer cannot be carried"),
        ("promise", "a promise cannot be carried"),
        ("proxy", "a Proxy cannot be carried"),
        ("weak", "a WeakMap cannot be carried"),
        ("shared", "shared memory cannot be carried"),
        ("ref", "an instance of WeakRef cannot be carried"),
        ("generator", "a generator cannot be carried"),
        ("iterator", "an iterator cannot be carried"),
        ("bound", "a bound or native function cannot be carried"),
        ("emitter", "an event emitter cannot be carried"),
        ("worker", "a worker cannot be carried"),
        ("child", "a child process cannot be carried"),
        ("stream", "a stream cannot be carried"),
        ("count", "a function that uses n, a local variable of the code around it"),
        ("me", "an arrow function that uses this or arguments of the code around it"),
        ("secret", "an instance of Secret, whose private fields cannot be read"),
        ("sup", "sup.m: a method that uses super"),
        ("lazy", "a getter on the global object cannot be carried"),
    ] {
        assert_eq!(done.reason(name), reason, "{name}");
    }
    assert!(done.reason("wasm").ends_with("cannot be carried"));
    let mut next = Kernel::start();
    next.load(&kernel.file("dump")).whole();
    assert_eq!(next.run("good.a"), "1");
    assert_eq!(next.fails("config"), "ReferenceError");
    assert_eq!(kernel.run("config.good === good && count()"), "1");
}

#[test]
fn nothing_of_the_users_runs_during_a_dump() {
    let (mut kernel, done) = dumped(&[
        "var ran = []; const trap = (name) => new Proxy(function () {}, new Proxy({}, {get() { ran.push(name) }}));
         class Watch { get splice() { ran.push('splice') } get length() { ran.push('length') } get [Symbol.toStringTag]() { ran.push('tag'); return 'T' } toJSON() { ran.push('json') } static get name() { ran.push('name') } }
         let w = new Watch(), getter = {get g() { ran.push('g') }, toJSON() { ran.push('json') }, [Symbol.toPrimitive]() { ran.push('prim') }, valueOf() { ran.push('value') }};
         let proxy = trap('proxy'), inside = [proxy], child = Object.create(proxy), fn = () => 1; fn.watch = w;
         class Loud extends Error { get name() { ran.push('error name') } get message() { ran.push('message') } get stack() { ran.push('stack') } } let loud = new Loud(), quiet = new Error('q');
         Error.prepareStackTrace = () => { ran.push('prepare') };
         class Hooked extends Map { get size() { ran.push('size') } forEach() { ran.push('each') } } let hooked = new Hooked([[1, 2]]); let array = [1]; Object.defineProperty(array, 0, {get() { ran.push('element') }});
         Object.defineProperty(globalThis, 'glob', {get() { ran.push('global') }, enumerable: true, configurable: true}); let own = [Object.assign(new Date(0), {toJSON() { ran.push('date') }})]; 0",
    ]);
    assert_eq!(done.error(), None);
    assert_eq!(kernel.run("ran.length + ' ' + ran"), "'0 '");
}

#[test]
fn a_dump_withstands_what_user_code_has_done_to_the_built_ins() {
    let (kernel, done) = dumped(&[
        "let kept = {a: [1, 'two', new Map([[1, 2]])]}, fn = (x) => x;
         JSON.stringify = JSON.parse = Array.prototype.push = Array.prototype.forEach = String.prototype.slice = Map.prototype.get = Map.prototype.set = Map.prototype.has = Map.prototype.forEach = Object.getOwnPropertyDescriptor = Reflect.ownKeys = Object.keys = Buffer.prototype.subarray = () => { throw new Error('patched') };
         Object.prototype.toJSON = () => 'no'; Array.prototype[Symbol.iterator] = () => { throw 1 }; fs.writeSync = fs.openSync = () => -1; delete Object.prototype.toJSON; 0",
    ]);
    assert_eq!(done.error(), None);
    let mut next = Kernel::start();
    next.load(&kernel.file("dump")).whole();
    assert_eq!(next.run("kept.a[1] + kept.a[2].get(1) + fn(3)"), "'two23'");
}

#[test]
fn a_damaged_file_is_refused_and_the_kernel_stays_fresh() {
    let (kernel, _) =
        dumped(&["let a = {b: [1, 2, 3]}; class K {} process.env.MARK = '1'; var g = 1"]);
    let whole = std::fs::read(kernel.file("dump")).unwrap();
    let mut next = Kernel::start();
    let bad = next.file("bad");
    let mut refused = |bytes: &[u8], what: &str| {
        std::fs::write(&bad, bytes).unwrap();
        let loaded = next.load(&bad);
        assert!(loaded.error().is_some(), "{what}: {loaded:?}");
        assert_eq!((loaded.count(), loaded.left().len()), (0, 0));
    };
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        refused(&bytes, &format!("byte {at}"));
    }
    for cut in 0..whole.len() {
        refused(&whole[..cut], &format!("cut at {cut}"));
    }
    refused(&[&whole[..], b"x"].concat(), "longer");
    assert_eq!(
        next.run("typeof a + typeof K + typeof g + process.env.MARK"),
        "'undefinedundefinedundefinedundefined'"
    );
    next.load(&kernel.file("dump")).whole();
    assert_eq!(next.run("a.b.length + g"), "4");
}

#[test]
fn one_class_that_fails_takes_along_only_what_needs_it() {
    let (kernel, done) = dumped(&[
        "class Picky { static { if (process.env.PICKY) throw new Error('not here') } } class Sub extends Picky {} class Fine {} let p = new Picky(), s = [new Sub()], fine = new Fine(), n = 1; fs.writeFileSync('gone.js', 'exports.x = () => 1'); const {x} = require('./gone.js'); let uses = {x}",
    ]);
    done.whole();
    std::fs::remove_file(kernel.work().join("gone.js")).unwrap();
    let mut next = Kernel::start_with(&[("PICKY", "1")]);
    let loaded = next.load(&kernel.file("dump"));
    assert_eq!(loaded.error(), None);
    assert_eq!(loaded.reason("Picky"), "Error: not here");
    assert_eq!(loaded.reason("Sub"), "it needs Picky: Error: not here");
    assert_eq!(loaded.reason("p"), "it needs Picky: Error: not here");
    assert!(loaded.reason("s").starts_with("it needs Picky"), "{loaded:?}");
    assert!(loaded.reason("x").contains("gone.js cannot be loaded"), "{loaded:?}");
    assert!(loaded.reason("uses").contains("gone.js cannot be loaded"), "{loaded:?}");
    assert_eq!(loaded.left().len(), 6);
    assert_eq!(next.run("n + (fine instanceof Fine) + typeof Picky"), "'2undefined'");
}

#[test]
fn an_interrupt_ends_a_dump() {
    let mut kernel = Kernel::start();
    kernel.run("let many = Array.from({length: 1500000}, (_, i) => ({i, next: [i]})); 0");
    let path = kernel.file("dump");
    kernel.tell(&json!({"op": "dump", "path": path}));
    let done = Carried(kernel.press_until("dumped"));
    assert!(done.error().is_some_and(|error| error.ends_with("it was interrupted")), "{done:?}");
    assert!(!path.exists());
    assert_eq!(kernel.run("many.length"), "1500000");
}

/// A module that hangs when it is loaded with `STUCK`: a prefix for the files that show
/// what hangs. It waits until the driver's thread for signals is up, which ends loops, too.
const HANGING_MODULE: &str = r"
import { writeFileSync } from 'node:fs';
if (process.env.STUCK) {
  while (process.listenerCount('SIGINT') > 0) await new Promise((later) => setTimeout(later, 1));
  writeFileSync(`${process.env.STUCK}module`, '');
  await new Promise(() => {});
}
export const w = () => 1;
";

const HANGING_CLASS: &str = r"
class Stuck {
  static {
    if (process.env.STUCK) fs.writeFileSync(`${process.env.STUCK}class`, '');
    while (process.env.STUCK) {}
  }
}
class After {}
let s = new Stuck(), a = new After(), n = 1;
import {w} from './wait.mjs';
";

#[test]
fn an_interrupt_ends_a_class_that_hangs_while_it_is_loaded() {
    let mut kernel = Kernel::start();
    std::fs::write(kernel.work().join("wait.mjs"), HANGING_MODULE).unwrap();
    kernel.run(HANGING_CLASS);
    kernel.dump(&kernel.file("dump")).whole();
    let stuck = kernel.file("stuck-");
    let mut next = Kernel::start_with(&[("STUCK", stuck.to_str().unwrap())]);
    next.tell(&json!({"op": "load", "path": kernel.file("dump")}));
    next.begin("n + (a instanceof After)");
    // One signal each: a second one could hit what is loaded after that.
    for hanging in ["stuck-module", "stuck-class"] {
        until(hanging, || kernel.file(hanging).exists().then_some(()));
        next.press();
    }
    let loaded = Carried(next.hear("loaded"));
    next.press();
    assert_eq!(loaded.reason("Stuck"), "it was interrupted while it was made again");
    assert!(loaded.reason("s").starts_with("it needs Stuck"));
    assert!(loaded.reason("w").contains("interrupted"));
    assert_eq!((loaded.left().len(), loaded.count()), (3, 3));
    // A run that came while the dump was loaded has waited for that, and a
    // signal that came too late has not hit it.
    assert_eq!(next.hear("done")["result"]["text"], "2");
}

#[test]
fn a_dump_is_private_new_and_refused_while_a_run_goes_on() {
    let (mut kernel, _) = dumped(&["let a = 1"]);
    let path = kernel.file("dump");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let before = std::fs::read(&path).unwrap();
    assert!(kernel.dump(&path).error().is_some_and(|error| error.contains("EEXIST")));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert!(
        kernel.dump(&kernel.file("no/such")).error().is_some_and(|error| error.contains("ENOENT"))
    );
    kernel.begin("await new Promise((done) => { go = done }); 0");
    assert_eq!(kernel.dump(&kernel.file("busy")).error(), Some("the kernel is busy"));
    assert!(!kernel.file("busy").exists());
}

#[test]
fn a_dump_to_a_full_disk_is_an_error_and_leaves_no_file() {
    let mut kernel = Kernel::start();
    kernel.run("let large = Buffer.alloc(1 << 20, 1); let a = 1");
    // Files may not grow beyond this; the signal for that is ignored by Node.
    kernel.run(
        "void require('child_process').execSync(`prlimit --pid ${process.pid} --fsize=65536`)",
    );
    let path = kernel.file("dump");
    assert!(kernel.dump(&path).error().is_some_and(|error| error.contains("EFBIG")));
    assert!(!path.exists());
    assert_eq!(kernel.run("a"), "1");
}

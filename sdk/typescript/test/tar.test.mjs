import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Readable } from "node:stream";
import { pack, unpack } from "../dist/esm/tar.js";

let root, tree;
const long = `${"deep/".repeat(30)}${"n".repeat(120)}`;

before(() => {
  root = mkdtempSync(join(tmpdir(), "sessile-tar-"));
  tree = join(root, "tree");
  mkdirSync(join(tree, "deep/".repeat(30)), { recursive: true });
  mkdirSync(join(tree, "empty"));
  mkdirSync(join(tree, "node_modules/a"), { recursive: true });
  writeFileSync(join(tree, "node_modules/a/index.js"), "ignored");
  writeFileSync(join(tree, long), "far");
  writeFileSync(join(tree, "ünï ☃.bin"), Buffer.alloc(1_000_001, 7));
  writeFileSync(join(tree, "none"), "");
  writeFileSync(join(tree, "run.sh"), "#!/bin/sh\n");
  chmodSync(join(tree, "run.sh"), 0o755);
  symlinkSync("/etc/passwd", join(tree, "link"));
});
after(() => rmSync(root, { recursive: true, force: true }));

const packed = async (options) => {
  const pieces = [];
  for await (const piece of pack(tree, options)) pieces.push(piece);
  return Buffer.concat(pieces);
};

const isWhole = (place) => {
  assert.equal(readFileSync(join(place, long), "utf8"), "far");
  assert.deepEqual(readFileSync(join(place, "ünï ☃.bin")), Buffer.alloc(1_000_001, 7));
  assert.equal(lstatSync(join(place, "run.sh")).mode & 0o777, 0o755);
  assert.equal(lstatSync(join(place, "none")).size, 0);
  assert.equal(readlinkSync(join(place, "link")), "/etc/passwd");
  assert.ok(lstatSync(join(place, "empty")).isDirectory());
};

test("a tree comes out as it went in, also in pieces of any size", async () => {
  const archive = await packed();
  for (const size of [archive.length, 1000, 511]) {
    const place = join(root, `out-${size}`);
    const pieces = Array.from({ length: Math.ceil(archive.length / size) }, (_, i) => archive.subarray(i * size, (i + 1) * size));
    const told = await unpack(Readable.from(pieces), place);
    assert.equal(told.files, 5);
    isWhole(place);
  }
});

test("the system's tar understands ours, and we understand it", async () => {
  mkdirSync(join(root, "theirs"));
  execFileSync("tar", ["-xf", "-", "-C", join(root, "theirs")], { input: await packed() });
  isWhole(join(root, "theirs"));
  for (const format of ["gnu", "pax"]) {
    const archive = execFileSync("tar", ["-cf", "-", `--format=${format}`, "-C", tree, "."], { maxBuffer: 1 << 25 });
    await unpack(Readable.from([archive]), join(root, format));
    isWhole(join(root, format));
  }
});

test("what is ignored is not carried, with all that is in it", async () => {
  const seen = [];
  const archive = await packed({ ignore: (path) => path === "node_modules", onProgress: (progress) => seen.push(progress) });
  await unpack(Readable.from([archive]), join(root, "less"));
  assert.ok(!existsSync(join(root, "less/node_modules")));
  assert.deepEqual(seen.at(-1), { files: 4, bytes: 1_000_014 });
});

test("nothing is written outside, through links, or from what is cut off", async () => {
  const hostile = (script) => execFileSync("python3", ["-c", `import io, sys, tarfile\nt = tarfile.open(fileobj=sys.stdout.buffer, mode='w|')\ndef add(name, type=tarfile.REGTYPE, link='', data=b'x'):\n  i = tarfile.TarInfo(name); i.type = type; i.linkname = link; i.size = len(data) if type == tarfile.REGTYPE else 0\n  t.addfile(i, io.BytesIO(data))\n${script}\nt.close()`]);
  const cases = {
    dots: "add('../out')",
    inner: "add('a/../../out')",
    absolute: `add('${root}/out')`,
    through: `add('l', tarfile.SYMTYPE, '${root}'); add('l/out')`,
    over: `add('l', tarfile.SYMTYPE, '${root}/out'); add('l')`,
  };
  for (const [name, script] of Object.entries(cases)) {
    const unpacking = unpack(Readable.from([hostile(script)]), join(root, `hostile-${name}`));
    if (name === "over") await unpacking;
    else await assert.rejects(unpacking, { code: "bad_archive" });
    assert.ok(!existsSync(join(root, "out")), name);
  }
  const archive = await packed();
  await assert.rejects(unpack(Readable.from([archive.subarray(0, 300_000)]), join(root, "cut")), /ends too early/);
  await assert.rejects(unpack(Readable.from([Buffer.alloc(512, 65)]), join(root, "noise")), /checksum/);
});

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, test } from "node:test";
import { sdk } from "./support/sdk.mjs";
import { Server } from "./support/server.mjs";

const { Session } = sdk;
let server, session;

before(async () => {
  server = await Server.start();
  session = await Session.start({ client: server.client() });
});
after(() => server.stop());

test("files are written, read, in parts and as streams", async () => {
  const { files } = session;
  const written = await files.write("notes/häuser.txt", "one\ntwo\n", { mode: "0640" });
  assert.deepEqual([written.path, written.type, written.size, written.mode], ["notes/häuser.txt", "file", 8, "0640"]);
  assert.equal((await session.exec("cat notes/*")).stdout, "one\ntwo\n");
  assert.equal(await files.readText("notes/häuser.txt"), "one\ntwo\n");
  assert.equal(await files.readText("notes/häuser.txt", { start: 4, end: 7 }), "two");
  const big = Buffer.alloc(20 << 20, "sessile ");
  await files.write("big", () => Readable.from([big.subarray(0, 5 << 20), big.subarray(5 << 20)], { objectMode: false }));
  assert.ok(big.equals(await files.read("big")));
  await files.write("raw", Buffer.from([0, 255, 10]));
  assert.deepEqual([...(await files.read("raw"))], [0, 255, 10]);
});

test("directories are listed, made, moved and removed", async () => {
  const { files } = session;
  await files.makeDirectory("tree/a/b");
  await files.write("tree/a/f", "x");
  await session.exec("ln -s f tree/a/link");
  assert.deepEqual((await files.list("tree")).map(({ name, type }) => [name, type]), [["a", "directory"]]);
  const deep = await files.list("tree", { depth: 3 });
  assert.deepEqual(deep.map(({ path }) => path), ["tree/a", "tree/a/b", "tree/a/f", "tree/a/link"]);
  assert.equal(deep.at(-1).target, "f");
  await files.move("tree/a/f", "tree/g");
  assert.deepEqual([await files.exists("tree/a/f"), await files.exists("tree/g")], [false, true]);
  await assert.rejects(files.remove("tree"), (error) => error.status >= 400);
  await files.remove("tree", { recursive: true });
  assert.equal(await files.exists("tree"), false);
  await assert.rejects(files.stat("tree"), { name: "FileNotFoundError", code: "file_not_found" });
});

test("nothing outside of the workspace is read or written", async () => {
  const { files } = session;
  await session.exec("ln -s /etc out");
  for (const path of ["../x", "/etc/passwd", "out/passwd"]) {
    await assert.rejects(files.read(path), (error) => error.status >= 400 && error.status < 500);
    await assert.rejects(files.write(path, "x"), (error) => error.status >= 400 && error.status < 500);
  }
});

test("trees go up and come down, with progress", async () => {
  const { files } = session;
  const local = join(server.root, "local");
  mkdirSync(join(local, "src/deep"), { recursive: true });
  mkdirSync(join(local, ".git"));
  writeFileSync(join(local, ".git/config"), "secret");
  writeFileSync(join(local, "src/deep/a.txt"), "a".repeat(100_000));
  writeFileSync(join(local, "run"), "#!/bin/sh\necho ran\n");
  chmodSync(join(local, "run"), 0o755);
  const steps = [];
  const sent = await files.upload(local, "up", { ignore: (path) => path === ".git", onProgress: ({ bytes }) => steps.push(bytes) });
  assert.deepEqual([sent.files, sent.bytes, steps.at(-1)], [2, 100_019, 100_019]);
  assert.equal((await session.exec("up/run; ls -A up; wc -c < up/src/deep/a.txt")).stdout, "ran\nrun\nsrc\n100000\n");
  await session.exec("echo new > up/src/new");
  const back = join(server.root, "back");
  assert.equal((await files.download("up", back)).files, 3);
  assert.equal(readFileSync(join(back, "src/new"), "utf8"), "new\n");
  assert.equal(statSync(join(back, "run")).mode & 0o777, 0o755);
});

test("changes are told as they happen", async () => {
  const { files } = session;
  await files.makeDirectory("watched");
  const seen = [];
  for await (const change of files.watch("watched")) {
    if (change.type === "ready") await session.exec("echo x > watched/f; rm watched/f");
    else seen.push([change.type, change.path]);
    if (change.type === "removed") break;
  }
  assert.deepEqual([seen[0], seen.at(-1)], [["created", "watched/f"], ["removed", "watched/f"]]);
  const other = await Session.start({ client: session.client });
  const rest = [];
  for await (const { type } of other.files.watch("watched")) {
    rest.push(type);
    await (await Session.attach(other.id, { client: session.client })).end();
  }
  assert.deepEqual(rest, ["ready"]);
});

test("a watch sees the files of all directories below, unless told otherwise", async () => {
  const { files } = session;
  await files.makeDirectory("tree/deep");
  const made = async (options) => {
    for await (const { type, path } of files.watch("tree", options)) {
      if (type === "ready") await session.exec("touch tree/deep/a; touch tree/b; rm tree/deep/a tree/b");
      if (type === "created") return path;
    }
  };
  assert.equal(await made(), "tree/deep/a");
  assert.equal(await made({ recursive: false }), "tree/b");
});

test("a session that was ended has no files any more", async () => {
  const ended = await Session.start({ client: session.client });
  await ended.writeFile("left.txt", "left\n");
  assert.deepEqual([await ended.readFile("left.txt"), (await ended.listFiles()).some(({ name }) => name === "left.txt")], ["left\n", true]);
  await ended.end();
  const { files, layer } = ended;
  const asks = [files.read("left.txt"), files.write("x", "x"), files.list(), files.stat("."), files.exists("."), files.makeDirectory("y"), files.move("a", "b"), files.remove("x"), files.upload(server.root), files.download(".", server.root), files.watch().next(), ended.readFile("left.txt"), layer.diff()];
  for (const ask of asks) await assert.rejects(ask, { name: "SessionClosedError", code: "session_closed" });
  assert.throws(() => ended.port(80), { name: "SessionClosedError" });
});

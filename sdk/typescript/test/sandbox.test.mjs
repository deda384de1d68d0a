import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { hidden, isHidden, wirePolicy } from "../dist/esm/policy.js";
import { sdk } from "./support/sdk.mjs";
import { Local, Server, passOver } from "./support/server.mjs";

const { Sandbox } = sdk;
let local, client, project;

before(() => {
  local = new Local();
  client = local.client();
  project = join(local.root, "project");
  mkdirSync(project);
  writeFileSync(join(project, "app.py"), "print('hello')\n");
  writeFileSync(join(project, ".env"), "KEY=secret\n");
});
after(() => local.stop());

/** A sandbox, or nothing where this machine cannot enforce it. */
async function sandboxed(t, options) {
  try {
    return await Sandbox.fromLocal(project, { client, ...options });
  } catch (error) {
    return passOver(t, error);
  }
}

test("a policy is sent by the API's names", () => {
  assert.equal(wirePolicy(true), true);
  assert.equal(wirePolicy("agent-safe"), "agent-safe");
  const policy = { preset: "read-only", limits: { memoryBytes: 1, pids: 2 }, binds: [{ host: "/data", readOnly: true }], network: ["a.example"] };
  assert.deepEqual(wirePolicy(policy), { preset: "read-only", limits: { memory_bytes: 1, pids: 2 }, binds: [{ host: "/data", read_only: true }], network: ["a.example"] });
});

test("sessions of a sandbox share its files, and the directory stays as it is", async (t) => {
  const sandbox = await sandboxed(t, { preset: "full-access", labels: { team: "a" } });
  if (!sandbox) return;
  assert.deepEqual([await sandbox.status(), sandbox.labels], ["running", { team: "a" }]);
  const first = await sandbox.run("pwd; python3 app.py; echo 'print(42)' > app.py; x=1");
  assert.equal(first.check().stdout, "/workspace\nhello\n");
  const session = await sandbox.session({ env: { STAGE: "test" } });
  assert.equal((await session.exec("python3 app.py; echo $STAGE [$x]")).stdout, "42\ntest []\n");
  assert.equal((await session.eval("import os; os.getcwd()")).result, "'/workspace'");
  assert.equal((await sandbox.run("pwd", { workdir: "/tmp" })).stdout, "/tmp\n");
  const seen = [];
  for await (const event of sandbox.stream("cat app.py")) if (event.type === "stdout") seen.push(event.data);
  assert.deepEqual(seen, ["print(42)\n"]);
  assert.equal((await session.exec("ls /root /home/agent; cat /etc/shadow")).success, false);
  const same = await Sandbox.connect(sandbox.id, { client });
  assert.equal((await same.run("cat app.py")).stdout, "print(42)\n");
  assert.equal(readFileSync(join(project, "app.py"), "utf8"), "print('hello')\n");
  await session.end();
  await sandbox.destroy();
  assert.equal(await sandbox.status(), "stopped");
});

test("destroying a sandbox ends its sessions, whoever made them", async (t) => {
  const sandbox = await sandboxed(t);
  if (!sandbox) return;
  const own = await sandbox.session();
  const other = await Sandbox.connect(sandbox.id, { client });
  const theirs = await other.session();
  // One with files of its own is a sandbox of its own.
  const branch = await theirs.fork({ files: "copy" });
  const stranger = await sdk.Session.start({ client });
  await sandbox.destroy();
  for (const session of [own, theirs]) {
    await assert.rejects(session.exec("echo still here"), (error) => error instanceof sdk.SessionClosedError);
    await assert.rejects(sdk.Session.attach(session.id, { client }), { code: "session_ended" });
  }
  for (const session of [branch, stranger]) {
    assert.equal((await session.exec("echo on")).stdout, "on\n");
    await session.end();
  }
  await other.destroy();
});

test("what is ignored is hidden, with all that is in it", () => {
  assert.deepEqual(hidden("node_modules").map(({ pattern }) => pattern), ["**/node_modules", "**/node_modules/**"]);
  assert.deepEqual(hidden("/build/").map(({ pattern }) => pattern), ["/build", "/build/**"]);
  const cases = [["a/node_modules", "node_modules/**", true], ["a.log", "*.log", true], ["x/a.log", "**/*.log", true], ["a.logs", "*.log", false], ["build/x", "/build", true], ["src/build", "/build/", false], ["a+b", "a+b", true]];
  for (const [path, pattern, expected] of cases) assert.equal(isHidden(path, pattern), expected, `${path} ${pattern}`);
});

test("a sandbox is started, stopped, found again with its labels, and destroyed", async (t) => {
  const sandbox = await sandboxed(t, { autoStart: false, labels: { a: "b" } });
  assert.deepEqual([sandbox.id, await sandbox.status()], ["", "pending"]);
  await assert.rejects(sandbox.run(":"), (error) => error instanceof sdk.SandboxNotRunningError && error.currentStatus === "pending" && /start\(\)/.test(error.hint));
  try {
    await sandbox.start();
  } catch (error) {
    return passOver(t, error);
  }
  await sandbox.run("echo kept > kept");
  const again = await Sandbox.connect(sandbox.id, { client });
  assert.deepEqual([await again.readFile("kept"), again.labels], ["kept\n", { a: "b" }]);
  const session = await sandbox.session();
  await sandbox.stop();
  assert.equal(await sandbox.status(), "stopped");
  await assert.rejects(sandbox.session(), { name: "SandboxNotRunningError", currentStatus: "stopped" });
  await assert.rejects(session.exec(":"), sdk.SessionClosedError);
  assert.equal((await (await sandbox.start()).run("cat kept")).stdout, "kept\n");
  await again.destroy();
  await sandbox.refresh();
  assert.equal(await sandbox.status(), "stopped");
  await sandbox.destroy();
  await assert.rejects(sandbox.start(), { name: "SandboxNotRunningError", currentStatus: "destroyed" });
  for (const id of [sandbox.id, "sess_0000"]) {
    await assert.rejects(Sandbox.connect(id, { client }), (error) => error instanceof sdk.SandboxNotFoundError && error instanceof sdk.NotFoundError && error.sandboxId === id);
  }
  await assert.rejects(Sandbox.fromLocal(join(project, "nowhere"), { client }), { name: "InvalidRequestError", code: "invalid_argument" });
});

test("runs have their own environment, directory, stdin and time, and files go in and out", async (t) => {
  const sandbox = await sandboxed(t);
  if (!sandbox) return;
  assert.equal((await sandbox.exec("sort; echo $A; pwd", { stdin: "b\na\n", env: { A: "1" }, workdir: "/tmp" })).stdout, "a\nb\n1\n/tmp\n");
  await assert.rejects(sandbox.run("sleep 100", { timeout: 200 }), (error) => error instanceof sdk.CommandTimeoutError && error.result.timedOut);
  await assert.rejects(sandbox.run("echo why >&2; exit 7", { raiseOnError: true }), (error) => error instanceof sdk.CommandError && error.exitCode === 7 && error.stderr === "why\n");
  assert.equal((await sandbox.run("exit 7")).exitCode, 7);
  await sandbox.writeFile("/workspace/src/new.py", "print(1)\n");
  assert.equal(await sandbox.readFile("src/new.py"), "print(1)\n");
  assert.deepEqual(await sandbox.readFileBytes("/src/new.py"), Buffer.from("print(1)\n"));
  assert.deepEqual([await sandbox.listFiles("/workspace/src"), (await sandbox.listFiles("", { recursive: true })).includes("src/new.py")], [["src/new.py"], true]);
  await assert.rejects(sandbox.readFile("/workspace/.env"), (error) => error instanceof sdk.FileNotFoundError && error instanceof sdk.CodebaseError);
  const shell = await sandbox.session({ shell: "/bin/sh" });
  await sandbox.writeFile("env.sh", "export STAGE=test\n");
  assert.equal((await shell.exec("source ./env.sh; echo $STAGE")).stdout, "test\n");
  assert.equal(await shell.readFile("env.sh"), "export STAGE=test\n");
  const python = await sandbox.session({ shell: "python3" });
  assert.equal((await python.exec("print(6 * 7)")).stdout, "42\n");
  await assert.rejects(sandbox.session({ shell: "/bin/fish" }), { code: "invalid_argument" });
  await sandbox.destroy();
});

test("a run that meets a limit says which, and its error is one of limits", async (t) => {
  const limits = { memoryBytes: 64 << 20 };
  const sandbox = await sandboxed(t, { resources: limits });
  if (!sandbox) return;
  const python = await sandbox.session({ shell: "python3" });
  const result = await python.exec("x = bytearray(1 << 28)");
  assert.deepEqual(result.limitsMet.map(({ resource, limit }) => [resource, limit]), [["memory", 64 << 20]]);
  assert.throws(() => result.check(), (error) => error instanceof sdk.LimitError && error instanceof sdk.CommandError && error.code === "limit" && /memory limit/.test(error.message));
  await sandbox.destroy();
});

test("codebases are kept at the server, and sandboxes made from them leave them alone", async (t) => {
  const server = await Server.start();
  t.after(() => server.stop());
  for (const client of [local.client(), server.client()]) {
    const { id } = await client.createCodebase("example", { ownerId: "me" });
    const { size, checksum } = await client.uploadFile(id, "src/a.txt", "a\n");
    assert.deepEqual([size, checksum.slice(0, 8)], [2, "87428fc5"]);
    assert.equal(Buffer.from(await client.downloadFile(id, "/src/a.txt")).toString(), "a\n");
    assert.deepEqual((await client.listFiles(id, "", { recursive: true })).map(({ path }) => path), ["src", "src/a.txt"]);
    assert.deepEqual(await client.listCodebases({ ownerId: "me" }), [{ id, name: "example", ownerId: "me", size: 2, fileCount: 1 }]);
    await assert.rejects(client.downloadFile(id, "none"), (error) => error instanceof sdk.FileNotFoundError && error.message.includes(id));
    await assert.rejects(client.uploadFile(id, "src/a.txt/b", "x"), (error) => error instanceof sdk.UploadError && error instanceof sdk.CodebaseError && error.filePath === "src/a.txt/b");
    for (const wrong of ["cb_0", "../x"]) await assert.rejects(client.uploadFile(wrong, "a", "x"), { name: "CodebaseNotFoundError", codebaseId: wrong });
    try {
      const sandbox = await Sandbox.fromCodebase(id, { client });
      assert.equal((await sandbox.run("echo changed > src/a.txt; cat src/a.txt")).stdout, "changed\n");
      assert.equal((await Sandbox.connect(sandbox.id, { client })).codebaseId, id);
      await sandbox.destroy();
    } catch (error) {
      if (error.code !== "sandbox_unavailable") throw error;
      t.diagnostic(error.message);
    }
    assert.equal(Buffer.from(await client.downloadFile(id, "src/a.txt")).toString(), "a\n");
    await client.deleteCodebase(id);
    await assert.rejects(client.getCodebase(id), sdk.CodebaseNotFoundError);
  }
});

test("a server elsewhere is sent the directory, but for what is ignored, and it goes with the sandbox", async (t) => {
  const server = await Server.start();
  t.after(() => server.stop());
  const place = join(local.root, "sent");
  mkdirSync(join(place, "src/node_modules/x"), { recursive: true });
  writeFileSync(join(place, "src/main.py"), "print('hello')\n");
  writeFileSync(join(place, "a.log"), "noise\n");
  const client = server.client();
  const sandbox = await Sandbox.fromLocal(place, { client, ignorePatterns: ["*.log", "node_modules"], autoStart: false });
  try {
    await sandbox.start();
  } catch (error) {
    return passOver(t, error);
  }
  assert.equal((await sandbox.run("python3 src/main.py; ls -A . src")).stdout, "hello\n.:\nsrc\n\nsrc:\nmain.py\n");
  assert.equal((await client.getCodebase(sandbox.codebaseId)).name, "sent");
  await sandbox.destroy();
  await assert.rejects(client.getCodebase(sandbox.codebaseId), sdk.CodebaseNotFoundError);
});

test("changes are seen, applied and dropped, path by path", async (t) => {
  const place = join(local.root, "layered");
  mkdirSync(place);
  writeFileSync(join(place, "kept.txt"), "old\n");
  const sandbox = await Sandbox.fromLocal(place, { client }).catch((error) => passOver(t, error));
  if (!sandbox) return;
  assert.equal(await sandbox.diff(), "");
  await sandbox.run("echo new > kept.txt; echo one > 'a,b.txt'; echo two > c.txt");
  const text = await sandbox.diff();
  assert.match(text, /-old\n\+new/);
  const session = await sdk.Session.attach(sandbox.id, { client });
  const changes = await session.layer.changes({ paths: ["a,b.txt", "c.txt"] });
  assert.deepEqual(changes.changes.map(({ path, change }) => [path, change]), [["a,b.txt", "added"], ["c.txt", "added"]]);
  assert.deepEqual([changes.insertions, changes.deletions, changes.truncated], [2, 0, false]);
  assert.deepEqual((await sandbox.discard({ paths: ["c.txt"] })).discarded, ["c.txt"]);
  assert.deepEqual((await sandbox.apply({ paths: ["a,b.txt"] })).applied, ["a,b.txt"]);
  assert.deepEqual([readFileSync(join(place, "a,b.txt"), "utf8"), readFileSync(join(place, "kept.txt"), "utf8")], ["one\n", "old\n"]);
  // Somebody else has changed it meanwhile.
  writeFileSync(join(place, "kept.txt"), "other\n");
  await assert.rejects(sandbox.apply(), { code: "layer_conflict" });
  await sandbox.apply({ force: true });
  assert.equal(readFileSync(join(place, "kept.txt"), "utf8"), "new\n");
  assert.equal((await sandbox.run("ls")).stdout, "a,b.txt\nkept.txt\n");
  await sandbox.destroy();
  const plain = await sdk.Session.start({ client });
  await assert.rejects(plain.diff(), { code: "no_layer" });
  await plain.end();
});

test("what is secret does not exist, and what may only be read stays", async (t) => {
  const sandbox = await sandboxed(t, { permissions: [{ pattern: "/app.py", permission: "read", priority: 10 }], ignorePatterns: ["**/*.log"] });
  if (!sandbox) return;
  const { stdout, stderr } = await sandbox.run("ls -A; cat .env; echo x > app.py");
  assert.equal(stdout, "app.py\n");
  assert.match(stderr, /\.env: No such file[^]*app\.py: .*(Permission denied|Read-only)/);
  await sandbox.destroy();
});

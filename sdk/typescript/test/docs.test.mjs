// Every example in TypeScript is checked by the compiler and run.
//
// A block that begins with ```ts is a program of its own. What it prints is
// compared with the comments `// → text` in it, in their order; `…` stands for
// anything within a line. `ts remote` is
// about another machine: https://box.example:7377, with the token TOKEN, the
// certificate box.pem and the directory /srv, is a real server here.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { after, before, test } from "node:test";
import { form } from "./support/sdk.mjs";
import { Model, exec } from "./support/model.mjs";
import { Local, Server, certificate } from "./support/server.mjs";

const run = promisify(execFile);
const ts = createRequire(import.meta.url)("typescript");
const sdk = fileURLToPath(new URL("..", import.meta.url));
const repository = join(sdk, "../..");
const PAGES = ["sdk/typescript/README.md", "docs/sdk.md", "docs/sdk-typescript.md", "docs/coming-from.md", "docs/coming-from-openclaw.md", "docs/agents.md", "docs/sdk-agents.md", "docs/coming-from-testbase.md", "README.md", "docs/time-travel.md", "docs/terminals.md", "docs/sandbox.md", "docs/save-and-restore.md", "docs/http-api.md", "docs/sdk-python.md", "docs/policies.md", "docs/durable.md", "docs/node.md", "docs/python.md", "docs/shells.md", "docs/runtime-tool.md", "docs/server.md", "docs/examples.md", "docs/command-line.md", "docs/mcp.md", "docs/session-directory.md", "docs/performance.md", "docs/snapshot-format.md"];

/** What the model says in all examples with an agent. */
const SCRIPT = [exec("echo 'print(\"hello\")' > app.py; python3 app.py"), "app.py prints hello.", exec("cat app.py"), "app.py handles errors now."];

function examples() {
  return PAGES.filter((page) => existsSync(join(repository, page))).flatMap((page) => {
    const text = readFileSync(join(repository, page), "utf8");
    return [...text.matchAll(/^```ts(.*)\n([^]*?)^```$/gm)].map(([, info, code], i) => ({
      name: `${page.replaceAll("/", "-")}-${i + 1}`,
      page,
      isRemote: info.includes("remote"),
      code,
      line: text.slice(0, text.indexOf(code)).split("\n").length,
    }));
  });
}

let local, place, model, box, pem;

before(async () => {
  local = new Local();
  model = await Model.start(SCRIPT);
  local.env.SESSILE_CONFIG = join(local.root, "sessile.toml");
  local.env.MODEL_KEY = "sk-test";
  writeFileSync(local.env.SESSILE_CONFIG, model.configuration());
  let files;
  box = await Server.start(["--config", "conf.toml"], (root) => {
    files = certificate(root);
    writeFileSync(join(root, "conf.toml"), model.configuration());
    mkdirSync(join(root, "srv/project"), { recursive: true });
    writeFileSync(join(root, "srv/project/Makefile"), "all:\n\t@echo made\n");
    return ["--tls-cert", files.cert, "--tls-key", files.key];
  }, { MODEL_KEY: "sk-test" });
  pem = files.cert;
  place = mkdtempSync(join(local.root, "docs-"));
  mkdirSync(join(place, "node_modules/@types"), { recursive: true });
  symlinkSync(sdk, join(place, "node_modules/sessile"));
  symlinkSync(join(sdk, "node_modules/@types/node"), join(place, "node_modules/@types/node"));
  symlinkSync(join(sdk, "node_modules/undici-types"), join(place, "node_modules/undici-types"));
  for (const { name, code } of examples()) writeFileSync(join(place, `${name}.mts`), code);
});
after(async () => {
  await local.stop();
  await box.stop({ tls: { ca: readFileSync(pem) } });
  model.close();
});

test("the examples are right by their types", { skip: form === "cjs" && "once is enough" }, () => {
  // The declarations of Node and of the language are somebody else's to check.
  const options = { strict: true, noEmit: true, skipLibCheck: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.Node16, moduleResolution: ts.ModuleResolutionKind.Node16, lib: ["lib.es2022.d.ts", "lib.esnext.disposable.d.ts"], types: ["node"], typeRoots: [join(sdk, "node_modules/@types")] };
  const program = ts.createProgram(examples().map(({ name }) => join(place, `${name}.mts`)), options);
  const wrong = ts.getPreEmitDiagnostics(program).map((found) => `${found.file?.fileName}: ${ts.flattenDiagnosticMessageText(found.messageText, "\n")}`);
  assert.deepEqual(wrong, []);
  assert.ok(program.getSourceFiles().length > 10);
});

/** What is said of another machine, of the one that stands for it. */
const there = (code) => code.replaceAll("https://box.example:7377", box.url).replaceAll('"TOKEN"', JSON.stringify(box.token)).replaceAll("/srv/", join(box.root, "srv/"));

/** `…` stands for anything within a line. */
function isLike(line, shown) {
  const parts = shown.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`).test(line);
}

for (const { name, page, line, code, isRemote } of examples()) {
  test(`${page}, line ${line}`, { skip: form === "cjs" && "examples are ESM" }, async () => {
    const folder = join(place, name);
    mkdirSync(join(folder, "project/backend"), { recursive: true });
    const { outputText } = ts.transpileModule(isRemote ? there(code) : code, { compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext } });
    writeFileSync(join(folder, "example.mjs"), outputText);
    if (isRemote) copyFileSync(pem, join(folder, "box.pem"));
    const env = { ...local.env, ...(isRemote && { NODE_EXTRA_CA_CERTS: pem, BOX_TOKEN: box.token }) };
    const { stdout } = await run(process.execPath, ["example.mjs"], { cwd: folder, env, timeout: 300_000 });
    const expected = [...code.matchAll(/\/\/ → (.*)$/gm)].map(([, text]) => text);
    const printed = stdout.replaceAll(realpathSync(folder), "/home/me").split("\n").slice(0, -1);
    assert.deepEqual(printed.map((line, i) => (isLike(line, expected[i] ?? "") ? expected[i] : line)), expected);
  });
}

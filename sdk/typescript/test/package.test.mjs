// What is published, installed into an empty directory.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { after, before, test } from "node:test";
import { platformPackage } from "../dist/esm/binary.js";
import { form } from "./support/sdk.mjs";
import { Local, binary } from "./support/server.mjs";

const run = promisify(execFile);
const root = fileURLToPath(new URL("..", import.meta.url));
let local;

before(() => {
  local = new Local();
});
after(() => local.stop());

test("installed from its packages, it finds its program, as ESM, as CommonJS and as a command", { skip: form === "cjs" && "once is enough" }, async () => {
  // The real one would take seconds to pack.
  const program = join(local.root, "program");
  writeFileSync(program, `#!/bin/sh\nexec '${binary}' "$@"\n`);
  const packed = await run(process.execPath, ["scripts/pack.mjs", "--binary", program, "--out", join(local.root, "packages")], { cwd: root });
  const { main, program: carrier } = JSON.parse(packed.stdout);
  const place = join(local.root, "app");
  mkdirSync(place);
  writeFileSync(join(place, "package.json"), '{"private": true}\n');
  const env = { ...local.env, PATH: `${process.execPath.replace(/\/[^/]*$/, "")}:/usr/bin:/bin` };
  delete env.SESSILE_BIN;
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", main, carrier], { cwd: place, env: local.env });
  for (const folder of ["sessile", platformPackage()]) {
    for (const name of ["README.md", "LICENSE-MIT", "LICENSE-APACHE"]) assert.ok(existsSync(join(place, "node_modules", folder, name)), `${folder} has no ${name}`);
  }
  const code = "const s = await Session.start(); console.log((await s.exec('echo $((6 * 7))')).stdout.trim()); await s.end();";
  writeFileSync(join(place, "a.mjs"), `import { Session } from "sessile";\n${code}`);
  writeFileSync(join(place, "b.cjs"), `const { Session } = require("sessile");\nconst { createRuntimeTool } = require("sessile/runtime");\n(async () => { ${code} console.log(createRuntimeTool("x").name); })();`);
  assert.equal((await run(process.execPath, ["a.mjs"], { cwd: place, env })).stdout, "42\n");
  assert.equal((await run(process.execPath, ["b.cjs"], { cwd: place, env })).stdout, "42\nruntime\n");
  const command = await run(join(place, "node_modules/.bin/sessile"), ["run", "echo from the command; exit 3"], { cwd: place, env }).catch((error) => error);
  assert.deepEqual([command.stdout, command.code], ["from the command\n", 3]);
});

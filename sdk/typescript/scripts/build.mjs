// Builds dist/esm and dist/cjs from src. `--unchecked` does not check the types, for tests
// that check them once, beside the build.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
process.chdir(root);
rmSync("dist", { recursive: true, force: true });
const unchecked = process.argv.includes("--unchecked") ? ["--noCheck"] : [];
const builds = [
  ["tsconfig.json", "dist/esm", "module"],
  ["tsconfig.cjs.json", "dist/cjs", "commonjs"],
].map(async ([project, folder, type]) => {
  const [status] = await once(spawn(process.execPath, [tsc, "--project", project, ...unchecked], { stdio: "inherit" }), "exit");
  if (status !== 0) process.exit(status ?? 1);
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/package.json`, `{"type": "${type}"}\n`);
});
await Promise.all(builds);
// The one line that cannot be written alike in both: where this package is.
writeFileSync("dist/cjs/here.js", '"use strict";\nexports.here = __filename;\n');

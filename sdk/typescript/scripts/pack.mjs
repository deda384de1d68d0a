// Makes the packages for npm: `sessile`, and the one that carries the program
// for this platform, on which `sessile` depends optionally.
//
//   node scripts/pack.mjs --binary target/release/sessile --out DIRECTORY
//
// `--licences` names the directory that has them, if it is not the repository's.
// Prints the paths of both as JSON. `npm run build` comes first.
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { platformPackage } from "../dist/esm/binary.js";

const { values } = parseArgs({ options: { binary: { type: "string" }, out: { type: "string" }, platform: { type: "string" }, arch: { type: "string" }, licences: { type: "string" } } });
if (!values.binary || !values.out) {
  console.error("usage: node scripts/pack.mjs --binary FILE --out DIRECTORY [--platform linux] [--arch x64] [--licences DIRECTORY]");
  process.exit(2);
}
const root = fileURLToPath(new URL("..", import.meta.url));
const { platform = process.platform, arch = process.arch } = values;
const out = resolve(values.out);
mkdirSync(out, { recursive: true });
const stage = mkdtempSync(join(tmpdir(), "sessile-pack-"));
const { devDependencies, scripts, ...manifest } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const { version, license } = manifest;
const carrier = platformPackage(platform, arch);

const main = join(stage, "main");
mkdirSync(main);
for (const name of ["dist", "bin", "README.md"]) cpSync(join(root, name), join(main, name), { recursive: true });
licences(main);
write(main, { ...manifest, optionalDependencies: { [carrier]: version } });

const program = join(stage, "program");
mkdirSync(join(program, "bin"), { recursive: true });
copyFileSync(resolve(values.binary), join(program, "bin/sessile"));
chmodSync(join(program, "bin/sessile"), 0o755);
licences(program);
writeFileSync(join(program, "README.md"), `# ${carrier}\n\nThe \`sessile\` program for ${platform} on ${arch}, for the package \`sessile\`, which finds it here. Install that one.\n`);
write(program, { name: carrier, version, description: `The sessile program for ${platform} on ${arch}`, license, os: [platform], cpu: [arch], libc: ["glibc"], files: ["bin", "LICENSE-*"], preferUnplugged: true });

console.log(JSON.stringify({ main: pack(main), program: pack(program) }));
rmSync(stage, { recursive: true });

function licences(folder) {
  for (const name of ["LICENSE-MIT", "LICENSE-APACHE"]) copyFileSync(join(values.licences ?? join(root, "../.."), name), join(folder, name));
}

function write(folder, content) {
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(content, null, 2)}\n`);
}

function pack(folder) {
  const printed = execFileSync("npm", ["pack", "--silent", "--pack-destination", out], { cwd: folder, encoding: "utf8" });
  return join(out, printed.trim().split("\n").at(-1));
}

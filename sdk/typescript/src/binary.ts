/** Finding the `sessile` program: SESSILE_BIN, the platform's package, PATH. */
import { accessSync, closeSync, constants, openSync, readSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { BinaryNotFoundError } from "./errors.js";
import { here } from "./here.js";

/** The package that carries the program for this platform. */
export function platformPackage(platform = process.platform, arch = process.arch): string {
  return `@sessile/${platform}-${arch}`;
}

/** The program's path. */
export function findBinary(env: NodeJS.ProcessEnv = process.env): string {
  const named = env["SESSILE_BIN"];
  if (named) {
    if (isProgram(named)) return named;
    throw notFound(`SESSILE_BIN is ${named}, which is no program`, "set it to the path of the sessile program");
  }
  const found = inPlatformPackage() ?? inPath(env["PATH"] ?? "");
  if (found) return found;
  throw notFound(`the sessile program was found neither in ${platformPackage()} nor in PATH`, howToGetOne());
}

/** What to do where there is no program for this platform. */
export function howToGetOne(platform: string = process.platform): string {
  if (platform !== "linux") return "sessions live on Linux: use a server there, with SESSILE_URL or the url of a Client";
  return (
    `npm install ${platformPackage()} brings it where it is published; otherwise build it from the source ` +
    "(cargo build --release -p sessile) and set SESSILE_BIN to its path, or use a server with SESSILE_URL"
  );
}

/** As ELF calls the machines that we have packages for. */
const MACHINES: Record<string, number> = { x64: 62, arm64: 183 };

/**
 * A program that is there and does not run: another architecture's, or another C library's.
 * The latter is not found by the system; the former is taken for a shell script.
 */
export function isForeign(program: string, error: { code?: unknown }): boolean {
  if (error.code === "ENOENT" || error.code === "ENOEXEC") return true;
  const [header, machine] = [Buffer.alloc(20), MACHINES[process.arch]];
  const file = openSync(program, "r");
  try {
    readSync(file, header);
  } finally {
    closeSync(file);
  }
  const isElf = header.subarray(0, 4).toString("latin1") === "\x7fELF";
  return isElf && machine !== undefined && header.readUInt16LE(18) !== machine;
}

export function foreign(program: string, cause: unknown): BinaryNotFoundError {
  const message = `${program} does not run here (${process.platform}-${process.arch}): it was built for another machine`;
  return new BinaryNotFoundError(message, { code: "binary_not_found", hint: howToGetOne(), cause });
}

function notFound(message: string, hint: string): BinaryNotFoundError {
  return new BinaryNotFoundError(message, { code: "binary_not_found", hint });
}

function inPlatformPackage(): string | undefined {
  try {
    const manifest = createRequire(here).resolve(`${platformPackage()}/package.json`);
    const program = join(dirname(manifest), "bin", "sessile");
    return isProgram(program) ? program : undefined;
  } catch {
    return undefined;
  }
}

function inPath(path: string): string | undefined {
  const folders = path.split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, "sessile")).find(isOurs);
}

/** npm's link to our own `bin/sessile.js` is in PATH, too, under `npm exec`; it would find itself. */
function isOurs(path: string): boolean {
  return isProgram(path) && !/node_modules[/\\]\.bin[/\\]/.test(path);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

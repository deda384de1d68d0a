/** Finding the `sessile` program: SESSILE_BIN, the platform's package, PATH. */
import { accessSync, constants, statSync } from "node:fs";
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
  throw notFound(
    `the sessile program was found neither in ${platformPackage()} nor in PATH`,
    `install it (npm install ${platformPackage()}), set SESSILE_BIN to its path, or use a server with SESSILE_URL`,
  );
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

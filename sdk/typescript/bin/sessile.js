#!/usr/bin/env node
// The `sessile` command, from the package of this platform.
import { spawn } from "node:child_process";
import { findBinary } from "../dist/esm/binary.js";

let program;
try {
  program = findBinary();
} catch (error) {
  console.error(`Error: ${error.message}`);
  process.exit(127);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends these to both; what others send is passed on.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`Error: cannot run ${program}: ${error.message}`);
  process.exit(126);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code ?? 1);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});

// Writes src/generated/openapi.ts from docs/openapi.json; with --check, compares.
import { readFileSync, writeFileSync } from "node:fs";
import openapi, { astToString } from "openapi-typescript";

const source = new URL("../../../docs/openapi.json", import.meta.url);
const target = new URL("../src/generated/openapi.ts", import.meta.url);
const head = "// Generated from docs/openapi.json by `npm run generate`; not to be edited.\n\n";
const document = JSON.parse(readFileSync(source, "utf8"));
// Types are found by path; the names of operations would be a second list of the same.
for (const operations of Object.values(document.paths)) {
  for (const operation of Object.values(operations)) delete operation.operationId;
}
const text = head + astToString(await openapi(document, { alphabetize: true, defaultNonNullable: false, emptyObjectsUnknown: true }));
if (!process.argv.includes("--check")) {
  writeFileSync(target, text);
} else if (readFileSync(target, "utf8") !== text) {
  console.error("src/generated/openapi.ts is out of date: run `npm run generate` in sdk/typescript and commit it");
  process.exit(1);
}

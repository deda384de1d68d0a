// The package as its users get it: as ESM, or with SESSILE_TEST_FORM=cjs as CommonJS.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
export const form = process.env.SESSILE_TEST_FORM ?? "esm";
const load = async (name) => (form === "cjs" ? require(name) : await import(name));
export const sdk = await load("sessile");
export const agents = await load("sessile/agents");

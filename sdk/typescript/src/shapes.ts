/** Names as JavaScript writes them, for what the API sends: `exit_code` is `exitCode`. */
import type { components } from "./generated/openapi.js";

/** The API's own types, generated from its description. */
export type Schemas = components["schemas"];

/** Objects whose keys are the user's, and stay as they are. */
type Verbatim = "data" | "env" | "env_vars" | "variables" | "aliases" | "labels";

const VERBATIM = new Set<string>(["data", "env", "env_vars", "variables", "aliases", "labels"] satisfies Verbatim[]);

type CamelKey<K> = K extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelKey<Tail>>}` : K;

/** A type of the API with its names in camelCase. */
export type Camel<T> = T extends readonly (infer Item)[]
  ? Camel<Item>[]
  : T extends object
    ? { [K in keyof T as CamelKey<K>]: K extends Verbatim ? T[K] : Camel<T[K]> }
    : T;

/** The same for values. */
export function camel<T>(value: T): Camel<T> {
  if (Array.isArray(value)) return value.map(camel) as Camel<T>;
  if (typeof value !== "object" || value === null) return value as Camel<T>;
  const out: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) {
    out[camelKey(key)] = VERBATIM.has(key) ? inner : camel(inner);
  }
  return out as Camel<T>;
}

function camelKey(key: string): string {
  return key.includes("_") ? key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()) : key;
}

/** A length of time: milliseconds, or text such as `"30s"`, `"500ms"`, `"2h"`. */
export type Span = number | string;

/** As the API takes it: text, or seconds. */
export function span(time: Span): string | number {
  return typeof time === "number" ? time / 1000 : time;
}

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** In milliseconds; `undefined` if the text is none. */
export function milliseconds(time: Span): number | undefined {
  if (typeof time === "number") return time;
  const parts = /^([0-9]+)(ms|s|m|h)$/.exec(time);
  return parts ? Number(parts[1]) * UNITS[parts[2] as string]! : undefined;
}

/** An object without what is undefined. */
export function given<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** What a sandboxed session may see, touch and use. */
import { given } from "./shapes.js";

/** `none`: does not exist. `view`: listed, not opened. `read`: no change. `write`: everything. */
export type PermissionLevel = "none" | "view" | "read" | "write";

export interface PermissionRule {
  pattern: string;
  permission: PermissionLevel;
  type?: "glob" | "directory" | "file";
  /** The highest wins. */
  priority?: number;
}

export interface Bind {
  host: string;
  inside?: string;
  readOnly?: boolean;
}

export interface ResourceLimits {
  memoryBytes?: number;
  /** Of one processor: 1.5 is one and a half. */
  cpus?: number;
  pids?: number;
  openFiles?: number;
  /** Of what the session has written. */
  layerBytes?: number;
}

export type Preset = "view-only" | "read-only" | "full-access" | "development" | "agent-safe";

export interface Policy {
  preset?: Preset | (string & {});
  /** `overlay`: changes go to a layer of the session; `direct`: to the directory itself. */
  files?: "overlay" | "direct";
  permissions?: readonly PermissionRule[];
  /** `none`, `full`, or the hosts that may be reached: `api.example.com`, `*.example.org:443`. */
  network?: "none" | "full" | readonly string[];
  limits?: ResourceLimits;
  binds?: readonly Bind[];
  /** Another system tree than the host's. */
  rootfs?: string;
  /** Root of its own user namespace, instead of the user `agent`. */
  root?: boolean;
}

/** `true` for the preset `development`, a preset's name, or a whole policy. */
export type SandboxPolicy = boolean | Preset | (string & {}) | Policy;

/** Above all rules of presets, which go up to 100, and those that people write. */
const IGNORED = 1000;

/** Rules for what is not to be there at all: `node_modules` and all that is in it, wherever it is; `/build` at the top. */
export function hidden(pattern: string): PermissionRule[] {
  const bare = pattern.replace(/\/+$/, "").replace(/\/\*\*$/, "");
  const rooted = bare.includes("/") ? bare : `**/${bare}`;
  return [rooted, `${rooted}/**`].map((each) => ({ pattern: each, permission: "none", priority: IGNORED }));
}

/** Whether a path, relative to its tree, is one that such a pattern hides. */
export function isHidden(path: string, pattern: string): boolean {
  return hidden(pattern).some((rule) => glob(rule.pattern).test(path));
}

/** `*` stays within a name, `**` does not. */
function glob(pattern: string): RegExp {
  const parts = pattern.replace(/^\/+/, "").split(/(\*\*\/|\*\*|\*|\?)/);
  const wild: Record<string, string> = { "**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]" };
  return new RegExp(`^${parts.map((part) => wild[part] ?? part.replace(/[.+^${}()|[\]\\]/g, "\\$&")).join("")}$`);
}

/** As the API takes it. */
export function wirePolicy(policy: SandboxPolicy): unknown {
  if (typeof policy !== "object") return policy;
  const { limits, binds, ...others } = policy;
  return given({ ...others, limits: limits && snake(limits), binds: binds?.map(snake) });
}

function snake(fields: object): Record<string, unknown> {
  const entries = Object.entries(given(fields));
  return Object.fromEntries(entries.map(([key, value]) => [key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]));
}

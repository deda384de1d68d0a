/** The layer that a sandboxed session writes to, instead of to its workspace. */
import type { Client } from "./client.js";
import type { SignalOption } from "./run.js";
import { type Camel, type Schemas, camel, given } from "./shapes.js";

/** What a session has changed. */
export type LayerDiff = Camel<Schemas["LayerDiff"]>;
export type LayerApplied = Camel<Schemas["LayerApplied"]>;
export type LayerDiscarded = Camel<Schemas["LayerDiscarded"]>;

export interface LayerOptions extends SignalOption {
  /** From the workspace, each with all that is below it; default: all. */
  paths?: string[];
}

/** With many files it takes its time. */
const LONG_MS = 600_000;

export class Layer {
  constructor(
    private readonly client: Client,
    private readonly path: string,
    /** Throws if the session was ended here. */
    private readonly assertOpen: () => void = () => undefined,
  ) {}

  private get open(): Client {
    this.assertOpen();
    return this.client;
  }

  /** The changes as a unified diff, of all paths or of some; with `stat`, a table of the paths. */
  async diff(options: LayerOptions & { stat?: boolean } = {}): Promise<string> {
    return (await this.changes(options)).diff;
  }

  /** The same with each path that differs. */
  async changes(options: LayerOptions & { stat?: boolean } = {}): Promise<LayerDiff> {
    const { signal, stat, paths } = options;
    const path = paths?.map((name) => name.replace(/[\\,]/g, "\\$&")).join(",");
    return camel(await this.open.json<Schemas["LayerDiff"]>({ method: "GET", path: `${this.path}/diff`, query: { stat, path }, waits: LONG_MS, signal }));
  }

  /** Brings changes to the real directory: all, or those of some paths. `force` replaces what has changed there meanwhile. */
  async apply(options: LayerOptions & { force?: boolean } = {}): Promise<LayerApplied> {
    const { signal, paths, force } = options;
    return camel(await this.open.json<Schemas["LayerApplied"]>({ method: "POST", path: `${this.path}/apply`, json: given({ paths, force }), waits: LONG_MS, signal }));
  }

  /** Drops changes: the session sees the real files again. */
  async discard(options: LayerOptions = {}): Promise<LayerDiscarded> {
    const { signal, paths } = options;
    return camel(await this.open.json<Schemas["LayerDiscarded"]>({ method: "POST", path: `${this.path}/discard`, json: given({ paths }), repeatable: "safe", waits: LONG_MS, signal }));
  }
}

/**
 * Ctrl-C while runs are waited for: they are interrupted, their sessions are
 * kept, and then the program ends as it would have without this package.
 *
 * The listener is there only while somebody waits. A program without listeners
 * of its own gets the signal a second time, when its runs are over and nothing
 * listens any more; a second Ctrl-C ends it at once. One that has listeners
 * decides itself, and the calls that waited return what came of the runs.
 */

/** Interrupts a run, and returns when it is over. */
type Interrupt = () => Promise<void>;

/** An interrupt takes two seconds at the worst, and longer on a machine that is overloaded; a server that is gone is not waited for. */
const PATIENCE_MS = 30_000;

class Waiting {
  private readonly interrupts = new Set<Interrupt>();
  private isEnding = false;

  /** Does the work; a Ctrl-C meanwhile interrupts the run that it waits for. */
  async for<T>(interrupt: Interrupt, work: () => Promise<T>): Promise<T> {
    this.add(interrupt);
    try {
      return await work();
    } finally {
      await this.remove(interrupt);
    }
  }

  add(interrupt: Interrupt): void {
    // The first to be told: a listener of the program's that hears once is gone when it was.
    if (this.interrupts.size === 0 && !this.isEnding) process.prependListener("SIGINT", this.onSignal);
    this.interrupts.add(interrupt);
  }

  /** Returns no more when the program is to end: what would come next must not begin. */
  async remove(interrupt: Interrupt): Promise<void> {
    this.interrupts.delete(interrupt);
    if (this.isEnding) await new Promise<never>(() => undefined);
    if (this.interrupts.size === 0) process.off("SIGINT", this.onSignal);
  }

  private readonly onSignal = (): void => {
    const isAlone = process.listenerCount("SIGINT") === 1;
    if (isAlone) {
      this.isEnding = true;
      process.off("SIGINT", this.onSignal);
    }
    const over = Promise.allSettled([...this.interrupts].map((interrupt) => interrupt()));
    if (!isAlone) return;
    const end = () => process.kill(process.pid, "SIGINT");
    setTimeout(end, PATIENCE_MS);
    void over.then(end);
  };
}

// One for the process, though this package may be loaded as ESM and as CommonJS:
// each would take the other's listener for the program's.
const WAITING = Symbol.for("sessile.waiting");

const place = globalThis as { [WAITING]?: Waiting };

export const waiting: Pick<Waiting, "for" | "add" | "remove"> = (place[WAITING] ??= new Waiting());

/**
 * When a request is sent again. Pure but for the clock, which is passed in.
 *
 * A request that never reached a server may always be sent again. One whose
 * answer was lost may only if doing it twice is the same as doing it once:
 * reading, or an order with an Idempotency-Key.
 */
import type { Reached } from "./transport.js";

/** Whether a request may be carried out twice. */
export type Repeatable = "safe" | "once";

/** What came of an attempt. */
export type Trouble =
  | { kind: "unanswered"; reached: Reached }
  | { kind: "refused"; code: string; retryAfterMs: number | undefined };

export type Verdict = { kind: "give up" } | { kind: "again"; afterMs: number; startLocal: boolean };

export interface Attempt {
  repeatable: Repeatable;
  /** From 1. */
  number: number;
  /** Since the first attempt. */
  elapsedMs: number;
  /** How long it is tried. */
  patienceMs: number;
  /** The server is one that we may start. */
  isLocal: boolean;
  /** Whether it has ever answered. One that never did is not being restarted: it is not there. */
  hasAnswered: boolean;
}

/** So often is a server asked that has never answered, and breaks off. */
const STRANGER = 4;

const FIRST_MS = 20;
const MOST_MS = 1000;

export function decide(attempt: Attempt, trouble: Trouble, random: () => number = Math.random): Verdict {
  if (attempt.elapsedMs >= attempt.patienceMs) return { kind: "give up" };
  const afterMs = pause(attempt.number, random);
  switch (trouble.kind) {
    case "unanswered":
      if (trouble.reached === "untrusted") return { kind: "give up" };
      if (trouble.reached === "broken" && attempt.repeatable === "once") return { kind: "give up" };
      // The first start is at once; one that did not help is repeated with pauses.
      if (attempt.isLocal) return { kind: "again", afterMs: attempt.number === 1 ? 0 : afterMs, startLocal: true };
      if (!attempt.hasAnswered && (trouble.reached === "unsent" || attempt.number >= STRANGER)) return { kind: "give up" };
      return { kind: "again", afterMs, startLocal: false };
    case "refused":
      if (!isPassing(trouble.code, attempt.repeatable)) return { kind: "give up" };
      return { kind: "again", afterMs: Math.min(trouble.retryAfterMs ?? afterMs, MOST_MS), startLocal: false };
  }
}

/** A refusal that another attempt may not meet. */
export function isPassing(code: string, repeatable: Repeatable): boolean {
  return code === "shutting_down" || (code === "keeper_unavailable" && repeatable === "safe");
}

/** Longer each time, and not the same for all who wait. */
function pause(number: number, random: () => number): number {
  const full = Math.min(FIRST_MS * 2 ** (number - 1), MOST_MS);
  return full * (0.5 + random() / 2);
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { decide } from "../dist/esm/retry.js";

const attempt = { repeatable: "safe", number: 1, elapsedMs: 0, patienceMs: 30_000, isLocal: false, hasAnswered: true };
const unanswered = (reached) => ({ kind: "unanswered", reached });
const kind = (changes, trouble) => decide({ ...attempt, ...changes }, trouble).kind;

test("what never reached a server is sent again, to a server that was there", () => {
  assert.equal(kind({ repeatable: "once" }, unanswered("unsent")), "again");
  assert.equal(kind({ hasAnswered: false }, unanswered("unsent")), "give up");
});

test("what may have been done is sent again only if that does no harm", () => {
  assert.equal(kind({}, unanswered("broken")), "again");
  assert.equal(kind({ repeatable: "once" }, unanswered("broken")), "give up");
  assert.equal(kind({ repeatable: "once", isLocal: true }, unanswered("broken")), "give up");
});

test("the local server is started where nobody is, at once and then with pauses", () => {
  const first = decide({ ...attempt, isLocal: true, hasAnswered: false }, unanswered("unsent"));
  assert.deepEqual(first, { kind: "again", afterMs: 0, startLocal: true });
  const second = decide({ ...attempt, isLocal: true, number: 2 }, unanswered("unsent"));
  assert.ok(second.startLocal && second.afterMs > 0);
});

test("a server that cannot be trusted, or that never answered, is not asked for long", () => {
  assert.equal(kind({}, unanswered("untrusted")), "give up");
  assert.equal(kind({ hasAnswered: false, number: 2 }, unanswered("broken")), "again");
  assert.equal(kind({ hasAnswered: false, number: 4 }, unanswered("broken")), "give up");
});

test("refusals that pass are waited for, others are told", () => {
  const refused = (code, retryAfterMs) => ({ kind: "refused", code, retryAfterMs });
  assert.deepEqual(decide(attempt, refused("shutting_down", 5000)), { kind: "again", afterMs: 1000, startLocal: false });
  assert.equal(kind({ repeatable: "once" }, refused("keeper_unavailable")), "give up");
  assert.equal(kind({}, refused("too_many_sessions")), "give up");
});

test("pauses grow, are not the same for all, and end", () => {
  const pauses = [1, 2, 3, 4, 5, 6, 7, 8].map((number) => decide({ ...attempt, number }, unanswered("broken"), () => 1).afterMs);
  assert.deepEqual(pauses, [20, 40, 80, 160, 320, 640, 1000, 1000]);
  assert.equal(decide(attempt, unanswered("broken"), () => 0).afterMs, 10);
  assert.equal(kind({ elapsedMs: 30_000 }, unanswered("unsent")), "give up");
});

/**
 * What to do, in the words of this package. The server speaks to those who
 * write requests: of headers, paths and fields. Whoever calls methods is told
 * of methods and options instead.
 */
const HINTS: Readonly<Record<string, string>> = {
  bad_request: "see the options of this method for what it takes",
  untrusted: "give trust: true if you trust whoever made the file",
  unauthorized: "give the client a token, or set SESSILE_TOKEN; `sessile token show --raw` prints the owner's",
  not_found: "check that the server is as new as this package",
  method_not_allowed: "check that the server is as new as this package",
  session_not_found: "start one with Session.start()",
  session_ended: "start a new one with Session.start(), with `from` for what its shell knew",
  key_reused: "give another idempotencyKey for another command, or none",
  input_closed: "begin the run with interactive: true to give it input",
  no_terminal: "begin the run with terminal: true",
  busy: "give wait: true, or interrupt the run",
  run_lost: "look at what it has done, then run what is missing",
  unsupported_media_type: "check that the server is as new as this package",
  keeper_unavailable: "try again in a moment",
  directory_not_empty: "give recursive: true",
  agent_not_found: "new Agent() with a task makes one; resumeSession takes the id of a session that has one",
  layer_conflict: "compare both, then apply with force: true, or other paths",
};

/** Signs that a hint is for those who write requests. */
const OF_REQUESTS = /\/v1\/|\/openapi\.json|\/docs\b|Authorization:|Content-Type:|Idempotency-Key|"\w+": |\w=true|new key/;

/** The same for agents, whose methods take other options. Most of the messages say it themselves. */
const OF_AGENTS: Readonly<Record<string, string>> = { busy: "wait for the task, or cancel it", not_found: "" };

/** The message of an ended session says how to start another one, and not how an agent gets it. */
const ENDED = "resetSession() lets the next task begin a new one";

/** So begins the message of a server that does not know the call. */
const NOWHERE = "there is nothing at ";

/** The hint for an error of the server; `path` is that of the call. */
export function hintFor(code: string, hint: string, message = "", path = ""): string {
  const isAgent = path.startsWith("/v1/agents");
  if (isAgent && code === "session_ended") return ENDED;
  const ofAgent = isAgent && !message.startsWith(NOWHERE) ? OF_AGENTS[code] : undefined;
  if (code === "bad_directory" || ofAgent !== undefined) {
    const advice = message.includes("; ") ? message.slice(message.lastIndexOf("; ") + 2) : "";
    if (advice && !OF_REQUESTS.test(advice)) return advice;
    if (ofAgent !== undefined) return ofAgent;
  }
  return OF_REQUESTS.test(hint) ? (HINTS[code] ?? hint) : hint;
}

const LITTLE = new Set(["a", "an", "and", "for", "it", "of", "or", "that", "the", "this", "to", "with"]);

/** Whether a text has all the words of a hint that matter. */
export function says(text: string, hint: string): boolean {
  const words = (of: string) => of.toLowerCase().match(/[\w=:-]+/g) ?? [];
  const said = new Set(words(text));
  return text.includes(hint) || words(hint).every((word) => LITTLE.has(word) || said.has(word));
}

'use strict';
// Evaluates user text with the semantics of V8's own REPL mode: top-level
// await, let/const/class that persist and may be declared again, and the value
// of the last expression.
//
// REPL mode is reachable only through the inspector, in this same process. Its
// answer is not used: V8 (seen in Node 22) may deliver it during a garbage
// collection, which aborts the process. Instead the promise that REPL mode
// evaluates into is caught as it is created (it resolves to an object with the
// value at '.repl_result'), and the session is disconnected before the promise
// settles. Only what fails before any user code has run (a syntax error) is
// taken from the answer, which then comes synchronously.
//
// Invariant: nothing that runs below the user's code keeps state that would be
// lost when that code is terminated: `leave` can be called again from outside.

const inspector = require('node:inspector');
const { promiseHooks } = require('node:v8');
const { isNativeError } = require('node:util').types;
const { Script } = require('node:vm');
const safe = require('./safe.js');
const { guarded } = require('./interrupt.js');

const { onInit } = promiseHooks;
const session = new inspector.Session();
// Created before any user code: Node iterates over an array to create one.
const asking = new inspector.Session();
const connect = safe.uncurry(inspector.Session.prototype.connect);
const disconnect = safe.uncurry(inspector.Session.prototype.disconnect);
const post = safe.uncurry(inspector.Session.prototype.post);
const bindPost = inspector.Session.prototype.post.bind.bind(inspector.Session.prototype.post);

const runScript = safe.uncurry(Script.prototype.runInThisContext);
const PLAIN = { __proto__: null, displayErrors: false };

const UNKNOWN = safe.freeze({ __proto__: null, value: undefined });

// Thrown into user code, which may inspect it.
const ALREADY_BEGUN = new RangeError('the run has begun already');
safe.defineProperty(ALREADY_BEGUN, 'stack', { __proto__: null, value: 'RangeError: the run has begun already' });

const sourceName = (id) => `<run-${id}>`;

// Words that a plain script does not know, or treats differently from REPL mode. A match
// in a string only costs a little time.
const NEEDS_REPL = /\b(?:let|const|class|await|import|using|export)\b/;

// A text that does not need REPL mode runs several times faster as a script: var and
// function mean the same there, and its value is the same.
function evaluatePlain(text, id, enter, settled) {
  let script;
  try {
    script = new Script(text, { filename: sourceName(id) });
  } catch {
    return false;
  }
  // Async hooks show user code the arguments of a tick (none) and the function itself,
  // which runs the text only once.
  let hasBegun = false;
  enter(() => safe.nextTick(() => {
    if (hasBegun) return;
    hasBegun = true;
    runPlain(script, text, id, enter, settled);
  }));
  return true;
}

function runPlain(script, text, id, enter, settled) {
  let outcome;
  try {
    outcome = { __proto__: null, value: runScript(script, PLAIN) };
  } catch (thrown) {
    outcome = isClash(thrown) ? null : { __proto__: null, thrown };
  }
  // The name is declared by let or class: nothing has run yet.
  if (outcome === null) evaluateRepl(text, id, enter, settled);
  else settled(outcome);
}

function isClash(thrown) {
  return isNativeError(thrown) && safe.exec(/^SyntaxError: Identifier '.+' has already been declared\n    at <run-\d+>:1:1\n    at Script\.runInThisContext /, `${thrown.stack}`) !== null;
}

function evaluate(text, id, enter, settled) {
  if (safe.exec(NEEDS_REPL, text) === null && evaluatePlain(text, id, enter, settled)) return null;
  return evaluateRepl(text, id, enter, settled);
}

// Calls `enter(fn)` to run `fn` in the context of the run, and later `settled(outcome)`:
// {value} | {thrown} | {syntax} | {ended} (by termination). Returns a function that ends
// the evaluation's use of the inspector; it is called when the synchronous part is over,
// however it ended.
function evaluateRepl(text, id, enter, settled) {
  const state = { promise: null, answer: null, stop: null, closed: false };
  let expression = `${text}\n//# sourceURL=${sourceName(id)}`;
  const params = {
    __proto__: null,
    // Read by each post: what user code finds in its tick runs the text only once.
    get expression() {
      if (expression === null) throw ALREADY_BEGUN;
      const once = expression;
      expression = null;
      return once;
    },
    replMode: true,
  };
  const answered = (error, result) => {
    if (!state.closed && state.answer === null) state.answer = { __proto__: null, error, result };
  };
  const leave = guarded(() => {
    if (state.closed || state.stop === null) return;
    state.closed = true;
    state.stop();
    disconnect(session);
    settle(state, settled);
  });
  safe.nextTick(guarded(() => arm(state)));
  enter(() => safe.nextTick(bindPost(session, 'Runtime.evaluate', params, answered)));
  safe.nextTick(leave);
  return leave;
}

function arm(state) {
  connect(session);
  const stop = onInit((promise) => {
    if (state.promise === null) {
      state.promise = promise;
      stop();
    }
  });
  state.stop = stop;
}

function settle(state, settled) {
  const { answer, promise } = state;
  if (answer !== null && answer.error === null) {
    const details = safe.getOwn(answer.result, 'exceptionDetails')?.value;
    settled(details === undefined ? { __proto__: null, value: answer.result.result.value } : { __proto__: null, syntax: details });
  } else if (promise === null || (answer !== null && isTerminated(answer.error))) {
    settled({ __proto__: null, ended: true });
  } else {
    // Makes `then` create an ordinary promise, without a lookup that user code can change.
    safe.defineProperty(promise, 'constructor', UNKNOWN);
    safe.then(
      promise,
      (wrapped) => settled({ __proto__: null, value: unwrap(wrapped) }),
      (thrown) => settled({ __proto__: null, thrown }),
    );
  }
}

// V8 also stops waiting for a promise whose constructor user code has changed; the
// promise itself is still usable.
function isTerminated(error) {
  return safe.includes(`${safe.getOwn(error, 'message')?.value}`, 'terminated');
}

function unwrap(wrapped) {
  const own = safe.getOwn(wrapped, '.repl_result');
  return own === undefined ? wrapped : own.value;
}

// Asks the inspector for something that runs no user code; the answer is there when post
// returns.
function ask(method, params) {
  let answer;
  connect(asking);
  try {
    post(asking, 'Runtime.enable');
    post(asking, method, params, (error, result) => {
      answer = { error, result };
    });
  } finally {
    disconnect(asking);
  }
  return answer !== undefined && answer.error === null ? answer.result : null;
}

const wrapped = (text) => `(async()=>{\n${text}\n})`;

function parses(text) {
  try {
    new Script(wrapped(text));
    return true;
  } catch {
    return false;
  }
}

// Why `text` is not a program, or null if it is: {message, offset}.
// Nothing is run. The wrapper makes await and return legal, so a text
// that passes here may still be refused by REPL mode for other reasons.
function parseError(text) {
  if (parses(text)) return null;
  const expression = wrapped(text);
  const answer = ask('Runtime.compileScript', { expression, sourceURL: '', persistScript: false });
  const details = answer === null ? undefined : answer.exceptionDetails;
  if (details === undefined) return null;
  return { message: messageOf(details), offset: offsetOf(text, details.lineNumber - 1, details.columnNumber) };
}

function offsetOf(text, line, column) {
  let at = 0;
  for (let i = 0; i < line; i++) at = nextLine(text, at);
  return at + column;
}

// V8 counts lines by all four of the language's line terminators.
function nextLine(text, from) {
  const terminator = /\r\n|[\n\r\u2028\u2029]/g;
  terminator.lastIndex = from;
  return safe.exec(terminator, text) === null ? text.length : terminator.lastIndex;
}

function messageOf(details) {
  const text = details.exception?.description ?? details.text;
  const end = safe.indexOf(text, '\n    at ');
  return end === -1 ? text : safe.slice(text, 0, end);
}

module.exports = { __proto__: null, evaluate, ask, parses, parseError, messageOf, sourceName };
//# sourceURL=node:internal/sessile/evaluate

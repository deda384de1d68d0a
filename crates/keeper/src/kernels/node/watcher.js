'use strict';
// The thread that receives SIGINT while the main thread is busy.
//
// It must not touch user code or output: it asks the main thread for a verdict (see
// interrupt.js) and, if that is to terminate, queues the order.

const { workerData, parentPort } = require('node:worker_threads');
const fs = require('node:fs');
const inspector = require('node:inspector');
// A Worker may not listen for signals through process.on.
const { internalBinding } = require('internal/test/binding');
const { Signal } = internalBinding('signal_wrap');

const RUN = 0;
const VERDICT = 1;
const QUEUED = 2;
const WATCHING = 3;
const TERMINATE = 1;
const SIGINT = 2;
const SLICE_MS = 20;

const cells = new Int32Array(workerData.memory);
const hook = JSON.stringify(workerData.hook);
const word = JSON.stringify(workerData.word);

let session = null;
let isAnswered = false;

// One question at a time: a second one would be killed by the termination that the first
// has ordered. The keeper signals again if needed.
function onSignal() {
  if (session !== null) return;
  session = new inspector.Session();
  session.connectToMainThread();
  Atomics.store(cells, VERDICT, 0);
  isAnswered = false;
  const expression = `this[${hook}](${targetRun()},${word})`;
  session.post('Runtime.evaluate', { expression, silent: true }, () => {
    isAnswered = true;
  });
  awaitVerdict();
}

// The run that the signal is for. If the keeper does not say, it is the current one,
// which may be the next run if the intended one has just ended.
function targetRun() {
  try {
    return Number.parseInt(fs.readFileSync(workerData.target, 'utf8'), 10) | 0;
  } catch {
    return Atomics.load(cells, RUN);
  }
}

// Without a limit, as the main thread may be in a long system call; but in slices, to
// notice an answer that came without a verdict.
function awaitVerdict() {
  Atomics.wait(cells, VERDICT, 0, SLICE_MS);
  const verdict = Atomics.load(cells, VERDICT);
  if (verdict === TERMINATE) order();
  else if (verdict !== 0 || isAnswered) finish();
  else setImmediate(awaitVerdict);
}

function order() {
  session.post('Runtime.terminateExecution', finish);
  Atomics.store(cells, QUEUED, 1);
}

function finish() {
  session.disconnect();
  session = null;
  parentPort.postMessage('handled');
}

const signal = new Signal();
signal.onsignal = onSignal;
signal.start(SIGINT);
Atomics.store(cells, WATCHING, 1);
Atomics.notify(cells, WATCHING);
parentPort.postMessage('watching');

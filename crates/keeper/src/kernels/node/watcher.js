'use strict';
// The thread that receives SIGINT while the main thread is busy.
//
// It must not touch user code or output: it asks the main thread for a verdict
// (see interrupt.js) and, if that is to terminate, queues the order.

const { workerData, parentPort } = require('node:worker_threads');
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

const cells = new Int32Array(workerData.memory);
const hook = JSON.stringify(workerData.hook);

function onSignal() {
  const session = new inspector.Session();
  session.connectToMainThread();
  Atomics.store(cells, VERDICT, 0);
  const expression = `this[${hook}](${Atomics.load(cells, RUN)})`;
  session.post('Runtime.evaluate', { expression, silent: true });
  // Without limit: the main thread may be in a system call for long.
  while (Atomics.load(cells, VERDICT) === 0) Atomics.wait(cells, VERDICT, 0);
  const done = () => {
    session.disconnect();
    parentPort.postMessage('handled');
  };
  if (Atomics.load(cells, VERDICT) === TERMINATE) {
    session.post('Runtime.terminateExecution', done);
    Atomics.store(cells, QUEUED, 1);
    Atomics.notify(cells, QUEUED);
  } else {
    done();
  }
}

const signal = new Signal();
signal.onsignal = onSignal;
signal.start(SIGINT);
Atomics.store(cells, WATCHING, 1);
parentPort.postMessage('watching');

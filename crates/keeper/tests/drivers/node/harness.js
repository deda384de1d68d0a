'use strict';
// Plays the keeper for the Node driver: FIFOs in a private directory, one JSON
// object a line. Tests wait on what the driver says or prints, never on time.

const { spawn, execFileSync } = require('node:child_process');
const { randomUUID } = require('node:crypto');
const { once, EventEmitter } = require('node:events');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const { test: nodeTest } = require('node:test');

const { O_RDWR, O_RDONLY, O_NONBLOCK } = fs.constants;
const DRIVER = path.resolve(__dirname, '../../../src/kernels/node');
const NODE = process.env.SESSILE_TEST_NODE ?? process.execPath;
const FLAGS = ['--no-force-async-hooks-checks'];

const INLINE = 4096;
// A hanging kernel fails its test instead of the whole suite.
const PATIENCE_MS = 120_000;

function mkfifo(...paths) {
  execFileSync('mkfifo', ['-m', '600', ...paths]);
}

function reader(file) {
  const socket = new net.Socket({ fd: fs.openSync(file, O_RDONLY | O_NONBLOCK), readable: true, writable: false });
  socket.on('error', () => {});
  return socket;
}

// One output pipe of a run. The keeper's own writing end keeps it from ending
// before the driver has opened it, and marks where `done` found it.
class Pipe extends EventEmitter {
  constructor(file) {
    super();
    mkfifo(file);
    this.file = file;
    this.chunks = [];
    this.writer = fs.openSync(file, O_RDWR);
    this.socket = reader(file);
    this.closed = once(this.socket, 'close');
    this.socket.on('close', () => this.emit('data'));
    this.socket.on('data', (chunk) => {
      this.chunks.push(chunk);
      this.emit('data');
    });
  }

  bytes() {
    return Buffer.concat(this.chunks);
  }

  // What was in the pipe before now, and lets go of the writing end.
  async drained() {
    const mark = Buffer.from(`\0${randomUUID()}\0`);
    fs.writeSync(this.writer, mark);
    let all = this.bytes();
    while (!all.includes(mark)) {
      await once(this, 'data');
      all = this.bytes();
    }
    const at = all.indexOf(mark);
    this.chunks = [all.subarray(0, at), all.subarray(at + mark.length)];
    fs.closeSync(this.writer);
    return all.subarray(0, at);
  }

  // Waits for `text`, before or after `done`.
  async prints(text) {
    while (!this.bytes().includes(text)) {
      if (this.socket.destroyed) throw new Error(`closed without printing ${text}`);
      await once(this, 'data');
    }
    return this.bytes().toString();
  }
}

// A test that fails half-way must not leave kernels behind.
const alive = new Set();
process.on('exit', () => {
  for (const kernel of alive) kernel.remove();
});
process.on('SIGTERM', () => process.exit(1));

class Kernel extends EventEmitter {
  static async start({ cwd, env, node = NODE } = {}) {
    const kernel = new Kernel();
    const base = fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir();
    kernel.dir = fs.mkdtempSync(path.join(base, 'sn-'));
    kernel.cwd = cwd ?? fs.mkdtempSync(path.join(os.tmpdir(), 'sessile-node-test-'));
    for (const file of fs.readdirSync(DRIVER)) {
      if (file.endsWith('.js')) fs.copyFileSync(path.join(DRIVER, file), path.join(kernel.dir, file));
    }
    const at = (name) => path.join(kernel.dir, name);
    mkfifo(at('ctl'), at('rep'));
    kernel.ctl = fs.openSync(at('ctl'), O_RDWR);
    kernel.rep = fs.openSync(at('rep'), O_RDWR);
    kernel.listen(reader(at('rep')));
    kernel.runs = 0;
    kernel.pipes = [];
    kernel.process = spawn(node, [...FLAGS, at('driver.js'), kernel.dir], {
      cwd: kernel.cwd,
      env: { ...process.env, ...env },
      stdio: 'ignore',
      detached: true,
    });
    alive.add(kernel);
    kernel.exited = once(kernel.process, 'exit');
    kernel.ready = await kernel.answer((message) => message.op === 'ready');
    return kernel;
  }

  listen(socket) {
    let rest = '';
    this.replies = socket;
    socket.setEncoding('utf8');
    socket.on('data', (chunk) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop();
      for (const line of lines) this.emit('message', JSON.parse(line));
    });
  }

  // The first message that `is` accepts; fails if the kernel dies before.
  answer(is) {
    return new Promise((resolve, reject) => {
      const onMessage = (message) => {
        if (!is(message)) return;
        this.off('message', onMessage);
        resolve(message);
      };
      this.on('message', onMessage);
      this.exited.then(([code, signal]) => reject(new Error(`the kernel died: ${code ?? signal}`)));
    });
  }

  tell(message) {
    fs.writeSync(this.ctl, `${JSON.stringify(message)}\n`);
  }

  // Starts a run and returns it at once: {id, stdout, stderr, done}.
  begin(code, { stdin, stdinPath, env } = {}) {
    const id = ++this.runs;
    const at = (name) => path.join(this.dir, `${id}.${name}`);
    const run = { id, stdout: new Pipe(at('out')), stderr: new Pipe(at('err')) };
    this.pipes.push(run.stdout, run.stderr);
    // As the keeper does: a short text comes with the order, any other in a file.
    const text = typeof code === 'string' && code.length <= INLINE ? code : undefined;
    if (text === undefined) fs.writeFileSync(at('code'), code);
    let input = stdinPath ?? '/dev/null';
    if (stdin !== undefined) fs.writeFileSync((input = at('in')), stdin);
    const secret = `secret${id}`;
    const done = this.answer((message) => message.op === 'done' && message.run === id && message.secret === secret);
    this.tell({ op: 'run', run: id, secret, text, code: at('code'), stdin: input, stdout: run.stdout.file, stderr: run.stderr.file, env });
    run.done = done.then((message) => this.collect(run, message));
    run.done.catch(() => {});
    return run;
  }

  async collect(run, message) {
    const [stdout, stderr] = await Promise.all([run.stdout.drained(), run.stderr.drained()]);
    return {
      run,
      exitCode: message.exit_code,
      result: message.result === null ? null : message.result.text,
      error: message.error,
      notes: message.notes,
      bytes: stdout,
      stdout: stdout.toString(),
      stderr: stderr.toString(),
    };
  }

  run(code, options) {
    return this.begin(code, options).done;
  }

  async state() {
    const state = this.answer((message) => message.op === 'state');
    this.tell({ op: 'state' });
    return state;
  }

  interrupt() {
    process.kill(this.process.pid, 'SIGINT');
  }

  // As the keeper does: again and again until the run has ended.
  async interruptUntilDone(run) {
    const again = setInterval(() => this.interrupt(), 100);
    this.interrupt();
    try {
      return await run.done;
    } finally {
      clearInterval(again);
    }
  }

  async end() {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      this.process.kill('SIGKILL');
      await this.exited;
    }
    this.replies.destroy();
    for (const pipe of this.pipes) pipe.socket.destroy();
    fs.closeSync(this.ctl);
    fs.closeSync(this.rep);
    this.remove();
  }

  remove() {
    alive.delete(this);
    this.process.kill('SIGKILL');
    fs.rmSync(this.dir, { recursive: true, force: true });
    fs.rmSync(this.cwd, { recursive: true, force: true });
  }
}

// A test on a kernel of its own.
function test(name, body) {
  nodeTest(name, { timeout: PATIENCE_MS }, async (context) => {
    const kernel = await Kernel.start();
    context.signal.addEventListener('abort', () => kernel.process.kill('SIGKILL'));
    try {
      await body(kernel);
    } finally {
      await kernel.end();
    }
  });
}

module.exports = { Kernel, Pipe, test, DRIVER, FLAGS, NODE, mkfifo };

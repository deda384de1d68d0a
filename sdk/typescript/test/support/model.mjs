// A model that says what a test wants, in the format of OpenAI's chat completions, streamed.
//
// What it answers depends on the conversation alone: step n of the script is the
// answer to a conversation in which the model has spoken n times.
import { once } from "node:events";
import { createServer } from "node:http";

/** A step: a text, or calls `[tool, arguments]`. `{ status, body }` answers with an error. */
export class Model {
  requests = [];
  held = [];
  holding = false;

  static async start(script) {
    const model = new Model();
    model.script = script;
    model.server = createServer((request, response) => void model.serve(request, response));
    model.server.listen(0, "127.0.0.1");
    await once(model.server, "listening");
    model.url = `http://127.0.0.1:${model.server.address().port}/v1`;
    return model;
  }

  /** A `[[model]]` for a server's configuration. */
  configuration(name = "scripted") {
    return `[[model]]\nname = "${name}"\nformat = "chat-completions"\nmodel = "test-1"\nbase-url = "${this.url}"\nkey-env = "MODEL_KEY"\ninput-price = 1.0\noutput-price = 2.0\n`;
  }

  /** Holds answers back until `release`. */
  hold() {
    this.holding = true;
  }

  release() {
    this.holding = false;
    for (const go of this.held.splice(0)) go();
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  async serve(request, response) {
    let text = "";
    for await (const part of request) text += part;
    const body = JSON.parse(text);
    this.requests.push({ path: request.url, headers: request.headers, body });
    if (this.holding) await new Promise((go) => this.held.push(go));
    const spoken = body.messages.filter(({ role }) => role === "assistant").length;
    const step = this.script[spoken] ?? "the script is over";
    if (step.status) {
      response.writeHead(step.status, { "content-type": "application/json" }).end(JSON.stringify(step.body ?? {}));
      return;
    }
    const chunks = typeof step === "string" ? ofText(step) : ofCalls(step, spoken);
    const reason = typeof step === "string" ? "stop" : "tool_calls";
    const last = [{ choices: [{ delta: {}, finish_reason: reason }] }, { choices: [], usage: { prompt_tokens: 100, completion_tokens: 10 } }];
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const chunk of [...chunks, ...last]) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    response.end("data: [DONE]\n\n");
  }
}

const pieces = (text) => text.match(/[^]{1,5}/gu) ?? [];
const ofText = (text) => pieces(text).map((content) => ({ choices: [{ delta: { content } }] }));

function ofCalls(calls, spoken) {
  return calls.flatMap(([name, input], index) => {
    const part = (fields) => ({ choices: [{ delta: { tool_calls: [{ index, ...fields }] } }] });
    const head = part({ id: `call_${spoken}_${index}`, function: { name, arguments: "" } });
    return [head, ...pieces(JSON.stringify(input)).map((piece) => part({ function: { arguments: piece } }))];
  });
}

/** A step that runs a command. */
export const exec = (command) => [["runtime", { action: "exec", command }]];

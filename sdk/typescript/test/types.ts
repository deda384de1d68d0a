// What the types promise; checked by the compiler, never run.
import { Client, type Codebase, CodebaseError, type FileEntry, type Result, type RunEvent, Sandbox, type SandboxStatus, Session, createRuntimeTool } from "sessile";
import { Agent, type AgentEvent, type AgentResult, CloudRuntime, LocalRuntime, run as runTask, stream } from "sessile/agents";
import { globalRuntimeManager } from "sessile/runtime";

export async function promises(): Promise<void> {
  await using session = await Session.start({ language: "python", env: { A: "1" }, idleTimeout: "5m" });
  const result: Result = await session.exec("1 + 1", { timeout: 1000, signal: AbortSignal.timeout(1000) });
  const code: number = result.check().exitCode;
  for await (const event of session.stream("ls")) told(event);
  const one: Session = await session.fork();
  const many: Session[] = await session.fork({ count: 2 });
  const run = await session.background("cat", { interactive: true });
  const over: Result = await run.wait();
  const maybe: Result | undefined = await run.wait({ timeout: 100 });
  const files: FileEntry[] = await session.files.list();
  const { asOfRun } = await session.checkpoint("name");
  const text: string = (await createRuntimeTool("here").execute("1", { action: "state" })).content[0]!.text;
  const terminated: Promise<void> = globalRuntimeManager.terminateAll();
  // @ts-expect-error: no such language
  await session.exec("x", { language: "perl" });
  // @ts-expect-error: no such option
  await Session.start({ workspce: "." });
  // @ts-expect-error: results are read-only
  result.stdout = "";
  void [code, one, many, over, maybe, files, asOfRun, text, terminated];
}

export async function sandboxes(): Promise<void> {
  const client = new Client();
  const codebase: Codebase = await client.createCodebase("name");
  await using sandbox = await Sandbox.fromCodebase(codebase.id, { client, labels: { a: "b" }, autoStart: false });
  const status: SandboxStatus = await (await sandbox.start()).status();
  const result: Result = await sandbox.exec("sort", { stdin: "b\na\n", workdir: "/tmp", raiseOnError: true, signal: AbortSignal.timeout(1000) });
  const paths: string[] = await sandbox.listFiles("src", { recursive: true });
  const session: Session = await sandbox.session({ shell: "/bin/sh" });
  const entries: FileEntry[] = await session.listFiles();
  const bytes: Uint8Array = await client.downloadFile(codebase.id, "a");
  const error: Error = new CodebaseError("x", { code: "upload_failed" });
  // @ts-expect-error: files that the server has are not ignored
  await Sandbox.fromCodebase(codebase.id, { ignorePatterns: ["x"] });
  void [status, result, paths, entries, bytes, error];
}

export async function agents(): Promise<void> {
  const agent = new Agent({ agentType: "computer", runtime: new LocalRuntime(), workspace: "./my-project" });
  const first: AgentResult = await runTask(agent, "Create app.py", { limits: { maxSteps: 5 }, signal: AbortSignal.timeout(1000) });
  const thread: string | undefined = agent.currentThreadId;
  for await (const event of stream(agent, "more")) happened(event);
  const forks: Agent[] = await agent.fork(2);
  await agent.rewind(first.steps[0]!.number);
  await agent.moveTo(new CloudRuntime({ url: "https://box.example", token: "t", debug: true }));
  agent.resetSession();
  await agent.resumeSession(first.sessionId);
  // @ts-expect-error: no such kind
  new Agent({ agentType: "llm" });
  void [thread, forks];
}

/** The same for agents. */
function happened(event: AgentEvent): string {
  switch (event.type) {
    case "task":
    case "delta":
    case "summary":
    case "reply":
    case "outcome":
      return event.text;
    case "approve":
      return event.call.tool;
    case "approval":
      return event.reason;
    case "intent":
      return event.before ?? event.after;
    case "continued":
      return event.continuity.status;
    case "retry":
      return event.failure.message;
    case "ended":
      return event.ended;
    case "other":
      return event.name;
  }
}

/** Every kind of event is known: a new one breaks this. */
function told(event: RunEvent): string {
  switch (event.type) {
    case "started":
    case "closed":
      return event.type;
    case "stdout":
    case "stderr":
      return event.data;
    case "exited":
      return event.result.stdout;
  }
}

/** Agents that go on: tasks, threads, and what survives a restart. */
import "../disposing.js";

export { Agent, type AgentInfo, type AgentOptions, type Limits, type RewoundAgent, run, stream, type TaskOptions } from "./agent.js";
export type {
  AgentEvent,
  ApprovalEvent,
  ApproveEvent,
  ContinuedEvent,
  DeltaEvent,
  EndedEvent,
  Ending,
  IntentEvent,
  OtherEvent,
  OutcomeEvent,
  ReplyEvent,
  RetryEvent,
  SummaryEvent,
  TaskEvent,
  ToolCall,
  Usage,
} from "./events.js";
export { type AgentContinuity, AgentResult, type DoneCall, type Step, TaskFailedError, type TaskInfo } from "./result.js";
export { CloudRuntime, type Debug, LocalRuntime, type Runtime } from "./runtime.js";
export { type Approver, type FollowOptions, Task, type Verdict } from "./task.js";

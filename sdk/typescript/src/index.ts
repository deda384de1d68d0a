import "./disposing.js";

export { findBinary } from "./binary.js";
export { type Call, Client, type ClientOptions, type SessionInfo, defaultClient } from "./client.js";
export type { Codebase, UploadResult } from "./codebases.js";
export {
  AbortError,
  AuthenticationError,
  BinaryNotFoundError,
  BusyError,
  type ClientCode,
  CodebaseError,
  CodebaseNotFoundError,
  CommandError,
  CommandLimitError,
  CommandTimeoutError,
  ConflictError,
  ConnectionError,
  FileNotFoundError,
  InvalidRequestError,
  LimitError,
  NotFoundError,
  PermissionDeniedError,
  RunLostError,
  SandboxNotFoundError,
  SandboxNotRunningError,
  SessileError,
  SessionClosedError,
  SessionNotFoundError,
  TimeoutError,
  UnavailableError,
  UploadError,
} from "./errors.js";
export type { ClosedEvent, ExitedEvent, OutputEvent, RunEvent, SessionEvent, StartedEvent } from "./events.js";
export { type FileChange, type FileEntry, Files, type ReadOptions, type WriteOptions } from "./files.js";
export { Layer, type LayerApplied, type LayerDiff, type LayerDiscarded, type LayerOptions } from "./layer.js";
export { localSocket, startLocal } from "./local.js";
export type { Bind, PermissionLevel, PermissionRule, Policy, Preset, ResourceLimits, SandboxPolicy } from "./policy.js";
export { Port, type PortAnswer, type PortRequest } from "./port.js";
export { type Continuity, type EndedJob, type Language, Result } from "./result.js";
export {
  createOpenClawCodingTools,
  createRuntimeTool,
  globalRuntimeManager,
  PythonSession,
  type RuntimeCommand,
  type RuntimeHistoryEntry,
  type RuntimeOutput,
  RuntimeSession,
  RuntimeSessionManager,
  type RuntimeState,
  type RuntimeTool,
  runtimeTool,
  type RuntimeToolInput,
  type RuntimeToolOutput,
  type SessionConfig,
  ShellSession,
} from "./runtime/index.js";
export { Run, type RunOutput, type Screen, type ScreenOptions } from "./run.js";
export { type FreshOptions, Sandbox, type SandboxOptions, type SandboxSessionOptions, type SandboxStatus } from "./sandbox.js";
export type { Restored, Saved, SaveSource } from "./saving.js";
export {
  type BackgroundOptions,
  type Checkpoint,
  type ExecOptions,
  type ForkOptions,
  type HistoryEntry,
  type Job,
  type KernelState,
  type Rewound,
  type RunDefaults,
  Session,
  type SessionState,
  type StartOptions,
} from "./session.js";
export type { Schemas, Span } from "./shapes.js";
export type { PackOptions, Progress } from "./tar.js";
export type { TlsOptions } from "./transport.js";

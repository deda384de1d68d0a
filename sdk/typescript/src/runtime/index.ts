import "../disposing.js";

export { globalRuntimeManager, RuntimeSessionManager } from "./manager.js";
export { PythonSession, type PythonSessionConfig } from "./python.js";
export { RuntimeSession } from "./session.js";
export { type ExecuteOutput, ShellSession, type ShellSessionConfig } from "./shell.js";
export { createOpenClawCodingTools, createRuntimeTool, type RuntimeTool, runtimeTool, type RuntimeToolInput, type RuntimeToolOutput, type ToolOptions } from "./tool.js";
export type { RuntimeCommand, RuntimeHistoryEntry, RuntimeOutput, RuntimeState, RuntimeType, SessionConfig } from "./types.js";

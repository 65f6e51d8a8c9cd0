// Types of workflows in code. Sage writes this file; editors and `tsc` read it.
//
//   export default async (sage: Sage, input: { topic: string }) => { .. }
//
// `Sage` and `StepError` are global; all other types come from the module: import type { Approval } from "sage"

declare module "sage" {
  /** Milliseconds, or a text such as "10m". */
  export type Duration = number | string;
  export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
  export type JsonSchema = boolean | { [name: string]: unknown };

  /** What is ours about a call; none of it changes what the call is known by but `key`. */
  export interface CallOptions {
    /** What its step is called. */
    label?: string;
    /** The group it is shown in; the one of `sage.phase` otherwise. */
    phase?: string;
    /** Makes calls different that ask for the same. */
    key?: Json;
    params?: { [name: string]: unknown };
    agent?: string;
    model?: string;
    session?: string;
    role?: string;
    prompt?: string;
    /** Files of the project that belong to the prompt: texts, images, PDFs. */
    files?: string | string[];
    /** MCP servers that the agent is given, by name. */
    mcp?: string | string[];
    schema?: JsonSchema;
    filter?: unknown;
    output?: string;
    expect?: { files?: string[]; headMoved?: boolean; command?: string };
    retry?: unknown;
    timeout?: Duration | { [name: string]: Duration };
    idleTimeout?: Duration;
    stall?: unknown;
    fallback?: unknown;
    hedge?: unknown;
    cache?: unknown;
    pool?: string | string[] | { [pool: string]: number };
    target?: string | string[];
    priority?: "P0" | "P1" | "P2" | "P3";
    budget?: unknown;
    isolation?: "none" | "worktree";
    onUnknown?: "retry" | "ask" | { reconcile: string };
    /** Results that a named operation sees as those of earlier steps, by name: "research/market". */
    steps?: { [step: string]: unknown };
  }

  export interface AgentOptions extends CallOptions {
    system?: string;
    tools?: string[] | string;
    maxTurns?: number;
    maxBudgetUsd?: number;
    /** How much it thinks; the nearest level that the agent knows. */
    effort?: "minimal" | "low" | "medium" | "high" | "xhigh" | "max";
    /** One of Claude Code's own agents. */
    agentType?: string;
    /** It makes a plan first, and works when a person has approved it. */
    mode?: "plan";
    /** Whether it may ask a person something. */
    questions?: boolean;
    /** Which of the project's own settings, skills and agents for Claude Code count. */
    project?: boolean | ("settings" | "skills" | "agents")[];
    script?: unknown[] | string;
    command?: string[];
    cwd?: string;
    env?: { [name: string]: string };
  }

  export interface ShellCommand {
    run?: string;
    argv?: string[];
    cwd?: string;
    env?: { [name: string]: string };
    /** Gives the parsed output instead of text. */
    json?: boolean;
  }

  export interface ShellResult {
    stdout: string;
    stderr: string;
    exitCode: number;
  }

  export interface ApprovalOptions extends CallOptions {
    choices?: string[];
    default?: string;
    deadline?: Duration;
  }

  export interface Approval {
    choice: string;
    by: string;
    message?: string | null;
  }

  export interface Budget {
    /** Tokens that the run may use; null without a limit. */
    readonly total: number | null;
    spent(): number;
    /** Infinity without a limit. */
    remaining(): number;
  }

  /** What a failed call rejects with. */
  export interface StepError extends Error {
    /** failed, transient, rate-limit, quota, auth, invalid, timeout, lost, rejected, budget, cancelled */
    code: string;
    /** The label of its call. */
    step: string;
  }

  export type Thunk<T> = () => T | PromiseLike<T>;
  export type Stage<From, Item, To> = (previous: From, item: Item, index: number) => To | PromiseLike<To>;

  /** Every call is a step: it is recorded, and answered from the record when the script runs again. */
  export interface Sage {
    readonly feature: string;
    readonly title: string;
    readonly budget: Budget;
    /** Its text, or with `schema` the object. */
    agent<T = string>(name: string, prompt: string | AgentOptions): Promise<T>;
    tool<T = unknown>(server: string, tool: string, args?: { [name: string]: unknown }, options?: CallOptions): Promise<T>;
    shell<T = ShellResult>(command: string | string[] | ShellCommand, options?: CallOptions): Promise<T>;
    /** Rejects with code "rejected" when it is turned down. */
    approve(message: string, options?: ApprovalOptions): Promise<Approval>;
    workflow<T = unknown>(name: string, inputs?: { [name: string]: unknown }, options?: CallOptions): Promise<T>;
    /** Durable: goes on after a restart, and holds nothing. */
    sleep(time: Duration, options?: CallOptions): Promise<null>;
    /** Any operation, named ones too: sage.run("research.market", { .. }). */
    run<T = unknown>(type: string, params?: { [name: string]: unknown }, options?: CallOptions): Promise<T>;
    /** As many at once as `limit` says. After a failure nothing new begins, then it rejects. */
    parallel<T extends readonly Thunk<unknown>[]>(thunks: [...T], options?: { limit?: number }): Promise<{ -readonly [K in keyof T]: Awaited<ReturnType<T[K]>> }>;
    parallel<T>(thunks: readonly Thunk<T>[], options?: { limit?: number }): Promise<T[]>;
    /** Each item through all stages; the items do not wait for each other. */
    pipeline<I, A>(items: readonly I[], a: Stage<I, I, A>): Promise<A[]>;
    pipeline<I, A, B>(items: readonly I[], a: Stage<I, I, A>, b: Stage<A, I, B>): Promise<B[]>;
    pipeline<I, A, B, C>(items: readonly I[], a: Stage<I, I, A>, b: Stage<A, I, B>, c: Stage<B, I, C>): Promise<C[]>;
    pipeline(items: readonly unknown[], ...stages: Stage<any, any, unknown>[]): Promise<unknown[]>;
    /** Calls from here on belong to this group. */
    phase(title: string): void;
    log(...values: unknown[]): void;
  }
}

/** What a workflow in code is given to work with. */
type Sage = import("sage").Sage;
/** What a failed call rejects with. */
type StepError = import("sage").StepError;

// The globals of a script that begins with `export const meta = { .. }`.

interface SageClaudeAgentOptions {
  label?: string;
  phase?: string;
  schema?: { [name: string]: unknown };
  model?: string;
  effort?: "low" | "medium" | "high" | "xhigh" | "max";
  agentType?: string;
  isolation?: "worktree";
  /** Which agent: claude, codex, gemini, .. */
  agent?: string;
  key?: unknown;
}

/** Its final text, or with `schema` the object; null when it was stopped or died. */
declare function agent<T = string>(prompt: string, options?: SageClaudeAgentOptions): Promise<T | null>;
/** All at once; what throws gives null. */
declare function parallel<T>(thunks: readonly (() => T | PromiseLike<T>)[]): Promise<(T | null)[]>;
/** Each item through all stages; a stage that throws drops its item to null. */
declare function pipeline<I, A>(items: readonly I[], a: import("sage").Stage<I, I, A>): Promise<(A | null)[]>;
declare function pipeline<I, A, B>(items: readonly I[], a: import("sage").Stage<I, I, A>, b: import("sage").Stage<A, I, B>): Promise<(B | null)[]>;
declare function pipeline<I, A, B, C>(items: readonly I[], a: import("sage").Stage<I, I, A>, b: import("sage").Stage<A, I, B>, c: import("sage").Stage<B, I, C>): Promise<(C | null)[]>;
declare function pipeline(items: readonly unknown[], ...stages: import("sage").Stage<any, any, unknown>[]): Promise<unknown[]>;
declare function phase(title: string): void;
declare function log(...values: unknown[]): void;
declare function workflow<T = unknown>(which: string | { scriptPath: string }, args?: unknown): Promise<T>;
declare const budget: import("sage").Budget;
declare const args: any;
declare const console: { log(...values: unknown[]): void; info(...values: unknown[]): void; warn(...values: unknown[]): void; error(...values: unknown[]): void; debug(...values: unknown[]): void };

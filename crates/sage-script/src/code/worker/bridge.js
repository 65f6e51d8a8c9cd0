// What code can do beside computing: ask the owner, and print. `__tell` is taken away before code runs.
const tell = globalThis.__tell;
const given = globalThis.__input;
delete globalThis.__tell;
delete globalThis.__input;

const { stringify } = JSON;
const open = new Map();
let last = 0;

const ask = (what) =>
  new Promise((resolve, reject) => {
    last += 1;
    open.set(last, { resolve, reject, stack: new Error().stack });
    tell("call", stringify({ id: last, ask: what }));
  });

export const callTool = (server, tool, input) =>
  ask({ tool: { server: String(server), tool: String(tool), input: input === undefined ? {} : input } });

export const tools = Object.freeze({
  search: (query, detail, limit) => {
    const more = typeof detail === "object" && detail !== null ? detail : { detail, limit };
    return ask({ search: { query: String(query), detail: more.detail ?? null, limit: more.limit ?? null } });
  },
});

export const handles = Object.freeze({ get: (name) => ask({ handle: String(name) }) });

export const input = given;

const shown = (value) => {
  if (typeof value === "string") return value;
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (typeof value === "bigint" || typeof value === "symbol" || typeof value === "function") return String(value);
  try {
    return stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
};

const print = (...values) => { tell("console", values.map(shown).join(" ")); };
globalThis.console = Object.freeze({ log: print, info: print, warn: print, error: print, debug: print, trace: print, table: print });

class ToolError extends Error {
  get name() { return "ToolError"; }
}

// Called by the owner's answers.
export default (id, good, value) => {
  const call = open.get(id);
  if (!call) return;
  open.delete(id);
  if (good) return call.resolve(value);
  const error = new ToolError(value);
  error.stack = call.stack;
  call.reject(error);
};

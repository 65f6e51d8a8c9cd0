// The globals of a workflow script of Claude Code.
(function (host, calls, meta, args) {
  "use strict";
  const { call, log, phase, budget, list, functions, group, failure, site, unknown } = calls;
  const known = new Set(["label", "phase", "schema", "model", "effort", "agentType", "isolation", "agent", "key"]);
  const efforts = ["low", "medium", "high", "xhigh", "max"];
  const models = new Map();
  for (const one of Array.isArray(meta?.phases) ? meta.phases : []) {
    if (typeof one?.title === "string" && typeof one.model === "string") models.set(one.title, one.model);
  }
  const checked = (options) => {
    for (const [name, value] of Object.entries(options)) {
      if (!known.has(name)) throw unknown("agent: no option", name, [...known]);
      const object = name === "schema";
      if (value === undefined || name === "key") continue;
      if (object ? value === null || typeof value !== "object" : typeof value !== "string") {
        throw new TypeError(`agent: \`${name}\` must be ${object ? "a JSON Schema" : "a text"}`);
      }
    }
    if (options.effort !== undefined && !efforts.includes(options.effort)) {
      throw new TypeError(`agent: \`effort\` is one of ${efforts.join(", ")}`);
    }
    if (options.isolation !== undefined && options.isolation !== "worktree") {
      throw new TypeError("agent: `isolation` is 'worktree' or left out");
    }
    if (options.schema !== undefined) {
      const wrong = host.contradiction(JSON.stringify(options.schema));
      if (wrong !== "") throw new TypeError(`agent: no value can satisfy the schema: ${wrong}`);
    }
  };
  const shortened = (prompt) => {
    const line = prompt.trim().split("\n", 1)[0];
    return line.length <= 40 ? line : line.slice(0, 40).replace(/\s+\S*$/, "");
  };
  const operation = (prompt, options, title) => {
    const { schema, isolation, agent, agentType, effort } = options;
    const model = options.model ?? models.get(title);
    const op = { type: "agent", prompt };
    for (const [name, value] of Object.entries({ agent, model, schema, isolation })) if (value !== undefined) op[name] = value;
    if (agentType !== undefined || effort !== undefined) op.params = { agentType, effort };
    return op;
  };
  const agent = (prompt, options = {}) => {
    try {
      if (typeof prompt !== "string" || prompt.trim() === "") throw new TypeError("agent takes a prompt");
      if (options === null || typeof options !== "object") throw new TypeError("agent: options must be an object");
      checked(options);
      const label = options.label ?? options.agentType ?? shortened(prompt);
      if (budget.total !== null && budget.spent() >= budget.total) {
        throw failure(`the budget of ${budget.total} tokens is used up`, "budget", label, site());
      }
      const title = options.phase ?? group();
      return call(operation(prompt, options, title), label, options.phase, options.key, true);
    } catch (error) {
      return Promise.reject(error);
    }
  };
  const workflow = (which, inputs) => {
    const template = typeof which === "string" ? which : which?.scriptPath;
    if (typeof template !== "string" || template === "") {
      return Promise.reject(new TypeError("workflow takes a name or { scriptPath }"));
    }
    // Inputs have names; any other value is the one that is called `args`.
    const named = inputs !== null && typeof inputs === "object" && !Array.isArray(inputs);
    const params = inputs === undefined ? { template } : { template, inputs: named ? inputs : { args: inputs } };
    const label = template.slice(template.lastIndexOf("/") + 1).replace(/\.[cm]?[jt]s$/, "");
    return call({ type: "workflow", params }, label, undefined, undefined, false);
  };
  const parallel = async (thunks) => {
    functions("parallel", thunks);
    return Promise.all(thunks.map(async (thunk) => {
      try { return await thunk(); } catch { return null; }
    }));
  };
  const pipeline = async (items, ...stages) => {
    list("pipeline", items);
    functions("pipeline", stages);
    return Promise.all(items.map(async (item, index) => {
      try {
        let value = item;
        for (const stage of stages) value = await stage(value, item, index);
        return value;
      } catch { return null; }
    }));
  };

  const globals = { agent, parallel, pipeline, phase, log, budget, workflow, args };
  for (const [name, value] of Object.entries(globals)) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  }
  const refused = (what, hint) => () => {
    throw new Error(`${what} is not available in workflow scripts: ${hint}`);
  };
  const clock = "give the time in args, or let an agent say it";
  const Told = Date;
  const NoClock = function Date(...given) {
    if (!new.target) refused("Date()", clock)();
    if (given.length === 0) refused("new Date()", clock)();
    return Reflect.construct(Told, given, new.target);
  };
  NoClock.prototype = Told.prototype;
  Object.defineProperty(Told.prototype, "constructor", { value: NoClock, writable: true, configurable: true });
  Object.assign(NoClock, { UTC: Told.UTC, parse: Told.parse, now: refused("Date.now()", clock) });
  Object.defineProperty(globalThis, "Date", { value: NoClock, writable: true, configurable: true });
  Math.random = refused("Math.random()", "vary prompts by index, or give a seed in args");
})

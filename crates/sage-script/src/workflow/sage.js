// `sage`, the first argument of a workflow in code.
(function (host, calls) {
  "use strict";
  const { call, log, phase, budget, list, functions, unknown } = calls;
  const fields = new Set(host.fields);
  // What a template says and a script does.
  const instead = {
    id: "label", needs: "await", when: "if", foreach: "a loop or sage.parallel", maxParallel: "sage.parallel(.., { limit })",
    tolerate: "try and catch", type: "sage.run(type, ..)", verify: "a call of its own",
  };
  const agentParams = new Set(host.agentParams);
  const { keys } = Object;
  const own = new Set(["key", "label", "phase", "params"]);

  const none = [];
  const optionNames = (extra) => {
    const all = new Set([...own, ...(extra ?? []), ...fields]);
    return [...all].filter((name) => !Object.hasOwn(instead, name)).sort();
  };

  // Splits options into the fields of an operation and what is ours; `extra` names options that are parameters.
  const operation = (who, type, params, options, extra) => {
    const op = { type };
    let all = params;
    const ours = {};
    if (options !== undefined && (options === null || typeof options !== "object" || Array.isArray(options))) {
      throw new TypeError(`${who}: options must be an object`);
    }
    const names = options === undefined ? none : keys(options);
    for (let i = 0; i < names.length; i++) {
      const name = names[i], value = options[name];
      if (value === undefined) continue;
      if (name === "params") all = { ...all, ...value };
      else if (own.has(name)) ours[name] = value;
      else if (extra?.has(name)) all = { ...all, [name]: value };
      else if (Object.hasOwn(instead, name)) throw new TypeError(`${who}: no option \`${name}\` in code: use ${instead[name]}`);
      else if (fields.has(name)) op[name] = value;
      else throw unknown(`${who}: no option`, name, optionNames(extra));
    }
    if (keys(all).length > 0) op.params = all;
    return { op, ours };
  };
  const named = (who, what, value) => {
    if (typeof value !== "string" || value === "") throw new TypeError(`${who}: ${what} must be a text`);
    return value;
  };
  const send = ({ op, ours }, label) => call(op, ours.label ?? label, ours.phase, ours.key, false);
  const short = (type) => type.slice(type.lastIndexOf(".") + 1);
  // A mistake in an argument rejects, as every other failure does.
  // None takes more than four: a list of arguments costs more than the rest.
  const promised = (make) => (a, b, c, d) => {
    try { return make(a, b, c, d); } catch (error) { return Promise.reject(error); }
  };

  const agent = promised((name, options) => {
    named("sage.agent", "the name", name);
    const given = typeof options === "string" ? { prompt: options } : options;
    return send(operation("sage.agent", "agent", {}, given, agentParams), name);
  });
  const tool = promised((server, tool, args, options) => {
    const params = { server: named("sage.tool", "the server", server), tool: named("sage.tool", "the tool", tool) };
    return send(operation("sage.tool", "tool", { ...params, arguments: args ?? {} }, options), tool);
  });
  const shell = promised((command, options) => {
    const params = typeof command === "string" ? { run: command } : Array.isArray(command) ? { argv: command } : { ...command };
    return send(operation("sage.shell", "shell", params, options), "shell");
  });
  const approvalParams = new Set(["choices", "default", "deadline"]);
  const approve = promised((message, options) => {
    named("sage.approve", "the message", message);
    return send(operation("sage.approve", "approval", { message }, options, approvalParams), "approve");
  });
  const workflow = promised((name, inputs, options) => {
    named("sage.workflow", "the name", name);
    const params = inputs === undefined ? { template: name } : { template: name, inputs };
    return send(operation("sage.workflow", "workflow", params, options), name);
  });
  const sleep = promised((time, options) => {
    const ms = typeof time === "number";
    if (!ms && typeof time !== "string") throw new TypeError('sage.sleep takes milliseconds or a text such as "10m"');
    return send(operation("sage.sleep", "sleep", ms ? { ms: Math.max(0, Math.round(time)) } : { for: time }, options), "sleep");
  });
  const run = promised((type, params, options) => {
    named("sage.run", "the type", type);
    return send(operation("sage.run", type, params ?? {}, options), short(type));
  });

  // As many at once as the limit says. After a failure nothing new begins, what runs ends, then it rejects.
  const each = async (count, limit, work) => {
    const results = new Array(count);
    let next = 0, failed = false, first;
    const worker = async () => {
      while (next < count && !failed) {
        const index = next++;
        try {
          results[index] = await work(index);
        } catch (error) {
          if (!failed) first = error;
          failed = true;
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(limit, count) }, worker));
    if (failed) throw first;
    return results;
  };
  const parallel = async (thunks, options) => {
    functions("sage.parallel", thunks);
    if (options !== undefined && (options === null || typeof options !== "object")) {
      throw new TypeError("sage.parallel: options must be an object, such as { limit: 3 }");
    }
    for (const name of Object.keys(options ?? {})) if (name !== "limit") throw unknown("sage.parallel: no option", name, ["limit"]);
    const limit = options?.limit ?? Infinity;
    if (typeof limit !== "number" || !(limit >= 1)) throw new RangeError("sage.parallel: limit must be 1 or more");
    return each(thunks.length, limit, (index) => thunks[index]());
  };
  const pipeline = async (items, ...stages) => {
    list("sage.pipeline", items);
    functions("sage.pipeline", stages);
    return each(items.length, Infinity, async (index) => {
      let value = items[index];
      for (const stage of stages) value = await stage(value, items[index], index);
      return value;
    });
  };

  // A typing error is told by name. `then` is asked for by promises, `toJSON` by JSON. What exists is found
  // before this is asked.
  const missing = new Proxy(Object.prototype, {
    get(target, name) {
      if (typeof name !== "string" || name in target || name === "then" || name === "toJSON") return target[name];
      throw unknown("sage has no", name, keys(sage).sort());
    },
  });
  const sage = Object.freeze(Object.setPrototypeOf({
    agent, tool, shell, approve, workflow, sleep, run, parallel, pipeline, phase, log, budget,
    feature: host.feature, title: host.title,
  }, missing));
  return sage;
})

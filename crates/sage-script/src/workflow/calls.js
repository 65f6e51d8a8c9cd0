// What both dialects are made of: a call is a promise that Rust answers, now or from the record.
(function (host) {
  "use strict";
  const { stringify } = JSON;
  const { apply } = Reflect;
  const { then } = Promise.prototype;
  const RealError = Error;
  const RealPromise = Promise;
  const settle = (value) => new RealPromise((resolve) => resolve(value));
  const refuse = (error) => new RealPromise((_, reject) => reject(error));
  // With its methods as its own: nobody can change them.
  const { get, set, delete: remove, keys } = Map.prototype;
  const open = Object.assign(new Map(), { get, set, remove, keys });
  let cancelled = false;
  let group;

  class StepError extends RealError {
    constructor(message, code, step) {
      super(message);
      this.code = code;
      this.step = step;
    }
  }
  Object.defineProperty(StepError.prototype, "name", { value: "StepError", configurable: true, writable: true });

  const failure = (message, code, step, stack) => {
    const error = new StepError(message, code, step);
    Object.defineProperty(error, "stack", { value: stack ?? "", configurable: true, writable: true });
    return error;
  };
  // A few frames: ours, and the script's.
  const site = () => {
    const limit = RealError.stackTraceLimit;
    RealError.stackTraceLimit = 8;
    const { stack } = new RealError();
    RealError.stackTraceLimit = limit;
    return typeof stack === "string" ? stack : "";
  };

  // JSON. A whole number is the same in both forms, and most keys are one.
  const keyed = (key) => {
    if (key === undefined) return "";
    return typeof key === "number" && (key | 0) === key ? `${key}` : stringify(key) ?? "";
  };
  const plain = (text) => `${text}`.toWellFormed();

  // `soft`: a call that fails or is cancelled gives null, as `agent()` of Claude Code does.
  const call = (operation, label, phase, key, soft) => {
    if (cancelled) {
      return soft ? settle(null) : refuse(failure("cancelled", "cancelled", label, site()));
    }
    let answer;
    try {
      answer = host.call(stringify(operation), plain(label), plain(phase ?? group ?? ""), keyed(key));
    } catch (error) {
      return refuse(failure(error.message, "invalid", label, site()));
    }
    const known = answer >= 0;
    const slot = known ? answer : -1 - answer;
    // Where a call was made costs more than the call; what is answered well from the record needs it not.
    const stack = known ? undefined : site();
    if (!known) host.at(stack);
    return new RealPromise((resolve, reject) => {
      open.set(slot, { resolve, reject, label, stack, soft });
    });
  };

  const taken = (slot) => {
    const entry = open.get(slot);
    open.remove(slot);
    return entry;
  };
  const stop = (entry) => {
    if (entry.soft) entry.resolve(null);
    else entry.reject(failure("cancelled", "cancelled", entry.label, entry.stack));
  };
  const hard = (code) => code === "invalid" || code === "budget";

  const control = {
    resolve(slot, value) {
      taken(slot)?.resolve(value);
    },
    // `refused`: by the endpoint, which Claude Code answers with null.
    fail(slot, code, message, refused) {
      const entry = taken(slot);
      if (!entry) return;
      if (entry.soft && (refused || !hard(code))) entry.resolve(null);
      else entry.reject(failure(message, code, entry.label, entry.stack));
    },
    stop(slot) {
      const entry = taken(slot);
      if (entry) stop(entry);
    },
    cancel() {
      cancelled = true;
      for (const slot of [...open.keys()]) stop(taken(slot));
    },
    begin(main, ...args) {
      const run = async () => stringify(await main(...args));
      apply(then, run(), [host.done, host.threw]);
    },
  };

  const text = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof RealError) return `${value.name}: ${value.message}`;
    try {
      return stringify(value) ?? String(value);
    } catch {
      return String(value);
    }
  };
  const log = (...values) => host.log(values.map(text).join(" ").toWellFormed());
  const phase = (title) => {
    if (typeof title !== "string" || title.trim() === "") throw new TypeError("phase takes a title");
    group = title;
  };
  const total = host.total < 0 ? null : host.total;
  const budget = Object.freeze({
    total,
    spent: () => host.spent(),
    remaining: () => (total === null ? Infinity : Math.max(0, total - host.spent())),
  });

  const list = (who, values) => {
    if (!Array.isArray(values)) throw new TypeError(`${who} takes a list, not ${values === null ? "null" : typeof values}`);
    if (values.length > host.maxItems) {
      throw new RangeError(`${who} takes at most ${host.maxItems} items, these are ${values.length}: give it parts of the list`);
    }
    return values;
  };
  const functions = (who, values) => {
    list(who, values).forEach((value, index) => {
      if (typeof value === "function") return;
      throw new TypeError(`${who} takes functions, item ${index} is not one: write () => agent(..)`);
    });
    return values;
  };

  const unknown = (what, name, names) => {
    const near = host.near(name, names);
    return new TypeError(`${what} \`${name}\`; ${near === "" ? "" : `did you mean \`${near}\`? `}there are: ${names.join(", ")}`);
  };

  Object.defineProperty(globalThis, "console", {
    value: Object.freeze({ log, info: log, warn: log, error: log, debug: log }),
    writable: true, configurable: true,
  });
  return { control, call, log, phase, budget, list, functions, group: () => group, failure, site, unknown };
})

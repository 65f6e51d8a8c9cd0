// Runs first in every isolate. `host` is what Rust gives: now() and draw().
// Takes away what would let a script see the machine or make code from text; gives a clock and chance that are told.
(function (host) {
  "use strict";
  const { now, draw } = host;
  const define = (on, name, value) =>
    Object.defineProperty(on, name, { value, writable: true, enumerable: false, configurable: true });

  for (const name of ["eval", "WeakRef", "FinalizationRegistry", "SharedArrayBuffer", "Atomics", "performance"]) {
    delete globalThis[name];
  }

  // A function made from text. Each kind of function reaches its maker through `constructor`.
  const kinds = [function () {}, async function () {}, function* () {}, async function* () {}];
  for (const kind of kinds) {
    const proto = Object.getPrototypeOf(kind);
    const name = proto.constructor.name;
    const maker = {
      [name]: function () {
        throw new EvalError("code from text is not run here: write the function out");
      },
    }[name];
    Object.defineProperty(maker, "prototype", { value: proto, writable: false });
    Object.defineProperty(proto, "constructor", { value: maker, writable: false, configurable: false });
    if (name === "Function") define(globalThis, "Function", maker);
  }

  define(Math, "random", function random() { return draw(); });

  const Real = Date;
  const RealProto = Real.prototype;
  const offset = RealProto.getTimezoneOffset;
  const zoned = /(?:[Zz]|GMT|UTC|[+-]\d\d:?\d\d)\s*(?:\(.*\))?$|^[+-]?\d{4,6}(?:-\d\d){0,2}$/;
  const { test } = RegExp.prototype;
  const { apply, construct } = Reflect;
  // The machine's zone is not the script's affair: times without a zone are UTC.
  const parsed = (text) => {
    const time = Real.parse(text);
    const away = time === time ? apply(offset, new Real(time), []) : 0;
    return away === 0 || apply(test, zoned, [text]) ? time : time - away * 60000;
  };
  const UTC = Real.UTC;
  function SageDate(...given) {
    if (!new.target) return new SageDate().toString();
    let args;
    if (given.length === 0) args = [now()];
    else if (given.length > 1) args = [apply(UTC, null, given)];
    else {
      let value = given[0];
      if (typeof value === "object" && value !== null && !(value instanceof Real)) {
        const primitive = value[Symbol.toPrimitive] ?? value.valueOf;
        value = typeof primitive === "function" ? apply(primitive, value, ["default"]) : value;
      }
      args = [typeof value === "string" ? parsed(value) : value];
    }
    return construct(Real, args, new.target);
  }
  SageDate.prototype = RealProto;
  define(RealProto, "constructor", SageDate);
  define(SageDate, "now", function () { return now(); });
  define(SageDate, "UTC", UTC);
  define(SageDate, "parse", function (text) { return parsed(`${text}`); });
  Object.defineProperty(SageDate, "name", { value: "Date" });
  Object.defineProperty(SageDate, "length", { value: 7 });
  define(globalThis, "Date", SageDate);

  for (const part of ["FullYear", "Month", "Date", "Hours", "Minutes", "Seconds", "Milliseconds", "Day"]) {
    define(RealProto, `get${part}`, RealProto[`getUTC${part}`]);
    if (part !== "Day") define(RealProto, `set${part}`, RealProto[`setUTC${part}`]);
  }
  define(RealProto, "getTimezoneOffset", function getTimezoneOffset() { return this.getTime() * 0; });
  delete RealProto.getYear;
  delete RealProto.setYear;
  const utcString = RealProto.toUTCString;
  // From `Mon, 16 Nov 2026 10:47:00 GMT`.
  const words = (date) => {
    const text = apply(utcString, date, []);
    const found = /^(\w+), (\d+) (\w+) (-?\d+) ([\d:]+) GMT$/.exec(text);
    return found ? { day: `${found[1]} ${found[3]} ${found[2]} ${found[4]}`, time: `${found[5]} GMT+0000` } : null;
  };
  const texts = {
    toString: (it) => `${it.day} ${it.time}`, toDateString: (it) => it.day, toTimeString: (it) => it.time,
    toLocaleString: (it) => `${it.day} ${it.time}`, toLocaleDateString: (it) => it.day,
    toLocaleTimeString: (it) => it.time,
  };
  for (const [name, text] of Object.entries(texts)) {
    define(RealProto, name, { [name]() { const it = words(this); return it ? text(it) : "Invalid Date"; } }[name]);
  }
})

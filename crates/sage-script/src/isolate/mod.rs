//! One script engine: its own heap, its own limits, and nothing of the machine.
//!
//! ```text
//!  Isolate::new(limits) -> add_module, function -> eval_module -> turn, turn, .. -> settled?
//! ```
//! Whatever runs code runs in a slice of CPU time; a slice that ends early is a `Fault`, never the script's own
//! error. The engine holds values that belong to its thread, so an isolate stays on the thread that made it.
//! Some natives (a huge `replaceAll`) cannot be interrupted: code that nobody vouches for belongs in a process.

mod chance;
mod fault;
mod limits;
mod modules;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rquickjs::context::EvalOptions;
use rquickjs::{Context, Ctx, Exception, Function, Module, Object, Persistent, Runtime, Value};

pub use fault::{Fault, Thrown, frames};
pub use limits::{Limits, Stop};

use chance::Chance;
use limits::Watch;
use modules::Modules;

const PRELUDE: &str = include_str!("prelude.js");
/// Our own code needs so much even when the script is allowed nothing.
const LEAST_MEMORY: usize = 1 << 20;

/// The value that a module's evaluation or a promise came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Settled {
    /// JSON as text; `undefined` is `None`.
    Value(Option<String>),
    Threw(Thrown),
}

pub struct Isolate {
    // Values of the engine go before the engine.
    modules: Modules,
    context: Context,
    runtime: Runtime,
    watch: Arc<Watch>,
    limits: Limits,
    now_ms: Rc<Cell<f64>>,
    chance: Rc<Chance>,
}

impl std::fmt::Debug for Isolate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Isolate").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Isolate {
    pub fn new(limits: &Limits) -> Result<Isolate, Fault> {
        Isolate::with_stop(limits, Stop::default())
    }

    /// Code in it ends when `stop` says so.
    pub fn with_stop(limits: &Limits, stop: Stop) -> Result<Isolate, Fault> {
        let broken =
            |error: rquickjs::Error| Fault::Broken(format!("the script engine does not start: {error}"));
        let runtime = Runtime::new().map_err(broken)?;
        runtime.set_memory_limit(limits.memory_bytes.max(LEAST_MEMORY));
        runtime.set_max_stack_size(limits.stack_bytes);
        let watch = Arc::new(Watch::new(stop));
        let asked = Arc::clone(&watch);
        runtime.set_interrupt_handler(Some(Box::new(move || asked.must_end())));
        let modules = Modules::default();
        runtime.set_loader(modules.clone(), modules.clone());
        let context = Context::full(&runtime).map_err(broken)?;
        let isolate = Isolate {
            modules,
            context,
            runtime,
            watch,
            limits: *limits,
            now_ms: Rc::default(),
            chance: Rc::default(),
        };
        isolate.begin();
        isolate.run(|ctx| isolate.prepare(&ctx))?;
        Ok(isolate)
    }

    fn prepare<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<()> {
        let host = Object::new(ctx.clone())?;
        let (now_ms, chance) = (Rc::clone(&self.now_ms), Rc::clone(&self.chance));
        host.set("now", Function::new(ctx.clone(), move || now_ms.get())?)?;
        host.set("draw", Function::new(ctx.clone(), move || chance.draw())?)?;
        let prelude: Function<'js> = own_code(ctx, "sage:prelude", PRELUDE)?;
        prelude.call((host,))
    }

    /// What `Date.now()` says from now on.
    pub fn set_now(&self, ms: u64) {
        self.now_ms.set(ms as f64);
    }

    /// What `Math.random` starts from.
    pub fn set_seed(&self, seed: u64) {
        self.chance.seed(seed);
    }

    /// JavaScript that others import as `path`: `./lib/rank.ts`, `servers/github`, `sage`.
    pub fn add_module(&self, path: &str, code: impl Into<String>) {
        self.modules.add(path, code.into());
    }

    /// A function on the global object: texts in, a text or an error out.
    pub fn function(
        &self,
        name: &str,
        call: impl Fn(Vec<String>) -> Result<String, String> + 'static,
    ) -> Result<(), Fault> {
        self.run(|ctx| {
            let told = move |ctx: Ctx<'_>, args: rquickjs::function::Rest<String>| {
                call(args.0).map_err(|why| Exception::throw_message(&ctx, &why))
            };
            ctx.globals().set(name, Function::new(ctx.clone(), told)?.with_name(name)?)
        })
    }

    /// A value on the global object, from JSON.
    pub fn global(&self, name: &str, json: &str) -> Result<(), Fault> {
        self.run(|ctx| ctx.globals().set(name, ctx.json_parse(json)?))
    }

    /// Begins a slice: until the next one the code may use `cpu_ms`.
    pub fn begin(&self) {
        self.watch.begin(Duration::from_millis(self.limits.cpu_ms));
    }

    /// Evaluates a module that was added, and gives its default export (a promise is not awaited).
    pub fn eval_module(&self, path: &str) -> Result<Held, Fault> {
        let code = self.modules.get(path).ok_or_else(|| Fault::Broken(format!("no module `{path}`")))?;
        let (module, done) = self.run(|ctx| {
            let module = Module::declare(ctx.clone(), path, code)?;
            let (module, done) = module.eval()?;
            let namespace: Value<'_> = module.namespace()?.into_value();
            Ok((Persistent::save(&ctx, namespace), Held::save(&ctx, done.into_value())))
        })?;
        self.turn()?;
        match self.settled(&done)? {
            Some(Settled::Threw(thrown)) => return Err(self.fault(thrown)),
            Some(Settled::Value(_)) => {}
            None => {
                return Err(Fault::Broken(format!(
                    "`{path}` waits at top level for something that nobody answers"
                )));
            }
        }
        self.run(|ctx| {
            let namespace = module.restore(&ctx)?;
            let default: Value<'_> = namespace
                .as_object()
                .map_or(Ok(Value::new_undefined(ctx.clone())), |it| it.get("default"))?;
            Ok(Held::save(&ctx, default))
        })
    }

    /// Calls a function with JSON values. The answer may be a promise.
    pub fn call(&self, function: &Held, args: &[&str]) -> Result<Held, Fault> {
        self.run(|ctx| {
            let function: Value<'_> = function.0.clone().restore(&ctx)?;
            let Some(function) = function.as_function() else {
                return Err(Exception::throw_type(&ctx, "the default export is not a function"));
            };
            let mut given = rquickjs::function::Args::new(ctx.clone(), args.len());
            for arg in args {
                given.push_arg(ctx.json_parse(*arg)?)?;
            }
            let value: Value<'_> = function.call_arg(given)?;
            Ok(Held::save(&ctx, value))
        })
    }

    /// Runs all that is ready to run.
    pub fn turn(&self) -> Result<(), Fault> {
        loop {
            match self.runtime.execute_pending_job() {
                Ok(true) => self.check()?,
                Ok(false) => return self.check(),
                Err(error) => {
                    let thrown = error.0.with(|ctx| Thrown::read(&ctx.catch()));
                    self.check()?;
                    return Err(self.fault(thrown));
                }
            }
        }
    }

    /// What a value or a promise has come to; `None` while it is open.
    pub fn settled(&self, held: &Held) -> Result<Option<Settled>, Fault> {
        self.run(|ctx| {
            let value: Value<'_> = held.0.clone().restore(&ctx)?;
            let Some(promise) = value.as_promise() else { return json_of(&ctx, value).map(Some) };
            match promise.result::<Value<'_>>() {
                None => Ok(None),
                Some(Ok(value)) => json_of(&ctx, value).map(Some),
                Some(Err(_)) => Ok(Some(Settled::Threw(Thrown::read(&ctx.catch())))),
            }
        })
    }

    /// Bytes that the engine uses now.
    pub fn memory_bytes(&self) -> usize {
        usize::try_from(self.runtime.memory_usage().memory_used_size).unwrap_or(0)
    }

    /// Runs `work` in the engine. What it throws is a fault with the script's own lines.
    pub(crate) fn run<R>(&self, work: impl FnOnce(Ctx<'_>) -> rquickjs::Result<R>) -> Result<R, Fault> {
        let result = self.context.with(|ctx| work(ctx.clone()).map_err(|error| told(&ctx, &error)));
        self.check()?;
        result.map_err(|error| match error {
            Fault::Threw(thrown) => self.fault(thrown),
            other => other,
        })
    }

    /// A limit that was hit while code ran, whatever the code made of it.
    fn check(&self) -> Result<(), Fault> {
        if self.watch.is_expired() {
            return Err(Fault::Cpu(self.limits.cpu_ms));
        }
        if self.watch.is_stopped() { Err(Fault::Stopped) } else { Ok(()) }
    }

    pub(crate) fn fault(&self, thrown: Thrown) -> Fault {
        if thrown.is_out_of_memory() { Fault::Memory(self.limits.memory_bytes) } else { Fault::Threw(thrown) }
    }
}

/// A value of an isolate, kept between slices.
#[derive(Clone)]
pub struct Held(pub(crate) Persistent<Value<'static>>);

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Held")
    }
}

impl Held {
    pub(crate) fn save<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Held {
        Held(Persistent::save(ctx, value))
    }
}

fn json_of<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Settled> {
    let text = ctx.json_stringify(value)?;
    text.map(|text| text.to_string()).transpose().map(Settled::Value)
}

/// Code of our own, by a name that stack traces leave out.
pub(crate) fn own_code<'js, V: rquickjs::FromJs<'js>>(
    ctx: &Ctx<'js>,
    name: &str,
    code: &str,
) -> rquickjs::Result<V> {
    let mut options = EvalOptions::default();
    options.filename = Some(name.to_owned());
    ctx.eval_with_options(code, options)
}

fn told(ctx: &Ctx<'_>, error: &rquickjs::Error) -> Fault {
    match error {
        rquickjs::Error::Exception => Fault::Threw(Thrown::read(&ctx.catch())),
        rquickjs::Error::Allocation => Fault::Threw(Thrown::out_of_memory()),
        other => Fault::Broken(other.to_string()),
    }
}

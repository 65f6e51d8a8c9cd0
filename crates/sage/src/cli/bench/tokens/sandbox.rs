//! Where the code of code mode really runs: the same sandbox as everywhere, with the recorded answers as its tools.

use std::sync::Arc;

use sage_core::port::BoxFuture;
use sage_script::code::{CodeLimits, CodeRun, CodeSession, NoSkills, Tools};
use sage_script::tools::ToolDef;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::frozen::{Frozen, Recorded};
use crate::cli::context::runtime;
use crate::cli::failure::Failure;
use crate::code::{CodeAnswer, program, told_failure};

/// What came of a run of code.
#[derive(Clone, Debug)]
pub struct Ran {
    /// As the model reads it.
    pub told: String,
    pub value: Option<Value>,
}

pub trait Sandbox {
    fn run(&self, code: &str) -> Ran;
}

pub struct Isolated {
    session: CodeSession,
    runtime: Runtime,
}

impl Isolated {
    pub fn new(frozen: &Frozen) -> Result<Isolated, Failure> {
        let tools = Replay { tools: frozen.tools.as_slice().into(), results: frozen.results.clone() };
        let session = CodeSession::new(program(), Arc::new(tools), Arc::new(NoSkills), CodeLimits::default());
        Ok(Isolated { session, runtime: runtime()? })
    }
}

impl Sandbox for Isolated {
    fn run(&self, code: &str) -> Ran {
        match self.runtime.block_on(self.session.run(&CodeRun::new(code))) {
            Ok(ran) => {
                let value = Some(ran.value.clone());
                let answer = CodeAnswer { session: "s1".into(), ran, saved: None, notes: Vec::new() };
                Ran { told: answer.told().to_string(), value }
            }
            Err(failure) => Ran { told: told_failure(&failure).to_string(), value: None },
        }
    }
}

/// Tools that answer what the servers answered.
struct Replay {
    tools: Arc<[ToolDef]>,
    results: Vec<Recorded>,
}

impl Tools for Replay {
    fn catalogue(&self) -> Arc<[ToolDef]> {
        Arc::clone(&self.tools)
    }

    fn call<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        input: Value,
    ) -> BoxFuture<'a, Result<Value, String>> {
        let same = |it: &&Recorded| it.server == server && it.tool == tool && it.arguments == input;
        let answer = match self.results.iter().find(same) {
            Some(recorded) if recorded.is_error => Err(recorded.text.clone()),
            Some(recorded) => Ok(recorded.value()),
            None => Err(format!("no answer to {input} is recorded")),
        };
        Box::pin(std::future::ready(answer))
    }
}

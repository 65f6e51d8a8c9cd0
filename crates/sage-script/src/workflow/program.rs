//! From the text of a workflow to modules in an isolate.

use sage_core::diagnostic::Shown;
use sage_core::port::script::{Dialect, Program};
use serde_json::Value;

use crate::isolate::Isolate;
use crate::strip::{Form, strip};

/// Puts the program and its modules into the isolate. Gives its `meta`, or why it cannot be read.
pub(super) fn load(isolate: &Isolate, program: &Program) -> Result<Option<Value>, String> {
    let name = program.name.as_str();
    let main = strip(name, &program.text, Form::Workflow).map_err(|problems| told(&problems))?;
    let code = match (program.dialect, main.scan.dialect) {
        (Dialect::Claude, Dialect::Claude) => main.wrapped("export default async () => {", "}"),
        (Dialect::Claude, Dialect::Sage) => {
            return Err(format!(
                "`{name}` does not begin with `export const meta = {{ .. }}`, or has an `export default`"
            ));
        }
        (Dialect::Sage, _) => main.code,
    };
    isolate.add_module(name, code);
    for module in &program.modules {
        let stripped = strip(&module.path, &module.text, Form::Module).map_err(|problems| told(&problems))?;
        isolate.add_module(&module.path, stripped.code);
    }
    Ok(main.scan.meta)
}

fn told(problems: &[Shown]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

//! Stands in for the `sage` binary in this crate's tests: the process that runs code.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1) {
        Some(arg) if arg == sage_script::code::SCRIPT_ARG => {
            sage_script::code::worker(std::io::stdin(), std::io::stdout())
        }
        _ => ExitCode::from(2),
    }
}

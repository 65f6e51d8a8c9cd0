//! The binary. The keeper, the evaluator, the offline agent and the sandbox come first: they must be quick.

use std::process::ExitCode;

fn main() -> ExitCode {
    sage_agents::begin();
    let mut args = std::env::args_os();
    match args.nth(1) {
        Some(arg) if arg == sage_agents::KEEPER_ARG => sage_agents::keeper_main(args),
        Some(arg) if arg == sage_agents::EVALUATE_ARG => sage_agents::evaluate_main(),
        Some(arg) if arg == sage_agents::OFFLINE_ARG => sage::cli::offline::main(args),
        Some(arg) if arg == sage_script::code::SCRIPT_ARG => {
            sage_script::code::worker(std::io::stdin(), std::io::stdout())
        }
        _ => sage::cli::main(),
    }
}

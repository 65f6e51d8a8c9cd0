//! The binary. The keeper and the offline agent come first: they are started for steps and must be quick.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    match args.nth(1) {
        Some(arg) if arg == sage_agents::KEEPER_ARG => sage_agents::keeper_main(args),
        Some(arg) if arg == sage_agents::OFFLINE_ARG => sage::cli::offline::main(args),
        _ => sage::cli::main(),
    }
}

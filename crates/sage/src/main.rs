//! The binary. The keeper comes first: it is started for every child process and must be quick.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let keeper = args.nth(1).is_some_and(|arg| arg == sage_agents::KEEPER_ARG);
    if keeper { sage_agents::keeper_main(args) } else { sage::cli::main() }
}

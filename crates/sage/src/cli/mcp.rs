//! `sage mcp`: an MCP server on stdin and stdout. Whoever starts it ends it by closing them.

use std::process::ExitCode;

use super::context::{Context, runtime};
use super::failure::Failure;
use crate::mcp::SageServer;
use crate::mcp::transport::serve_stdio;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Serve what the protocol's conformance suites expect, in place of this project
    #[cfg(debug_assertions)]
    #[arg(long, hide = true)]
    conformance: bool,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let runtime = runtime()?;
    let served = runtime.block_on(serve(context, &args));
    // Whatever still waits for a disk must not keep the process.
    runtime.shutdown_background();
    served.map_err(|error| Failure::failed(format!("MCP over stdin and stdout: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(debug_assertions)]
async fn serve(context: &Context, args: &Args) -> std::io::Result<()> {
    match args.conformance {
        true => serve_stdio(crate::mcp::conformance::Fixtures::new()?).await,
        false => serve_stdio(SageServer::new(context.clone())).await,
    }
}

#[cfg(not(debug_assertions))]
async fn serve(context: &Context, _args: &Args) -> std::io::Result<()> {
    serve_stdio(SageServer::new(context.clone())).await
}

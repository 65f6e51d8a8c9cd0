//! `sage mcp`: an MCP server on stdin and stdout. Whoever starts it ends it by closing them.

use std::process::ExitCode;

use super::context::{Context, runtime};
use super::failure::Failure;
use crate::mcp::SageServer;
use crate::mcp::transport::serve_stdio;

#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn execute(context: &Context, _args: Args) -> Result<ExitCode, Failure> {
    let runtime = runtime()?;
    let served = runtime.block_on(serve_stdio(SageServer::new(context.clone())));
    // Whatever still waits for a disk must not keep the process.
    runtime.shutdown_background();
    served.map_err(|error| Failure::failed(format!("MCP over stdin and stdout: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

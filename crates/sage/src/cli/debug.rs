//! `sage debug`: tools for tests and bug reports.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use super::failure::Failure;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Play a scripted agent: a JSON list of turns
    FakeAgent {
        /// The script's file
        script: PathBuf,
        /// Which attempt to play; attempt n starts at turn n
        #[arg(long, default_value_t = 1)]
        attempt: u32,
    },
    /// Play a model's endpoint (Anthropic and OpenAI protocols): a JSON list of turns
    FakeLlm {
        /// The script's file
        script: PathBuf,
        /// The port on 127.0.0.1; 0 is a free one
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// Append each request to this file as a line of JSON
        #[arg(long, value_name = "FILE")]
        log: Option<PathBuf>,
    },
    /// Play an MCP server on standard input and output, with tools that fail, hang and crash
    FakeMcp {
        /// Each start adds a line to this file
        starts: PathBuf,
        /// What makes it difficult: empty, deaf, prim, modern, slow, stubborn, brittle, other
        manners: Vec<String>,
    },
    /// Play an MCP client for a conformance suite: list the tools at an address and call them
    McpClient {
        /// Where the server is
        url: String,
    },
}

pub fn execute(args: Args) -> Result<ExitCode, Failure> {
    match args.what {
        What::FakeAgent { script, attempt } => Ok(sage_agents::fake_agent_main(&script, attempt)),
        What::FakeLlm { script, port, log } => {
            Ok(sage_agents::fake_llm::fake_llm_main(&script, port, log.as_deref()))
        }
        What::McpClient { url } => Ok(sage_agents::mcp::mcp_client_main(&url)),
        What::FakeMcp { starts, manners } => Ok(sage_agents::fake_mcp_main(&starts, &manners)),
    }
}

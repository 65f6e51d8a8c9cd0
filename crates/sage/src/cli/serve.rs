//! `sage serve`: an MCP server over HTTP on loopback, with a token, until a signal ends it.

mod card;
mod health;
mod secret;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;
use tokio::net::TcpListener;

use super::context::{Context, runtime};
use super::failure::{Failure, Kind};
use super::{print, print_json};
use crate::mcp::SageServer;
use crate::mcp::transport::{Door, Guard, asked_to_end, serve_http};
use card::Card;
use health::Health;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Port on 127.0.0.1; 0 takes any that is free
    #[arg(long, default_value_t = 7243)]
    port: u16,
    /// Keep the token in this file, so that clients need to be told only once; made if it is not there
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Serve what the protocol's conformance suites expect, in place of this project, to anybody on this machine
    #[cfg(debug_assertions)]
    #[arg(long, hide = true)]
    conformance: bool,
}

pub fn execute(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    let runtime = runtime()?;
    let served = runtime.block_on(serve(context, args));
    // Whatever still waits for a disk must not keep the process.
    runtime.shutdown_background();
    served
}

async fn serve(context: &Context, args: Args) -> Result<ExitCode, Failure> {
    // Before anything is said, so that no signal after that is missed.
    let end = asked_to_end()?;
    let token = secret::token(args.token_file.as_deref())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port))
        .await
        .map_err(|error| taken(args.port, &error))?;
    let port = listener.local_addr()?.port();
    let url = format!("http://{}:{port}/mcp", Ipv4Addr::LOCALHOST);
    context.project.prepare(context.disk.as_ref()).map_err(|error| Failure::failed(error.to_string()))?;
    let card = Card::write(&context.project, &url, token.text())?;
    tell(&url, &args, &card)?;
    let health = Health::of(context.clone());
    let (handler, guard) = (SageServer::shared(context.clone()), Guard::new(port, Some(token)));
    let door = Door { listener, handler, guard, health: Arc::new(move || health.look()) };
    #[cfg(debug_assertions)]
    if args.conformance {
        // The suites know no token.
        let (handler, guard) = (crate::mcp::conformance::Fixtures::new()?, Guard::new(port, None));
        serve_http(Door { handler, guard, listener: door.listener, health: door.health }, end).await?;
        return Ok(ExitCode::SUCCESS);
    }
    serve_http(door, end).await?;
    Ok(ExitCode::SUCCESS)
}

fn taken(port: u16, error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            Failure::new(Kind::Conflict, format!("port {port} on 127.0.0.1 is taken by another program"))
                .hint("sage serve --port 0    # any that is free")
                .hint(format!("ss -ltnp 'sport = :{port}'    (who has it)"))
        }
        std::io::ErrorKind::PermissionDenied => {
            Failure::usage(format!("port {port} may not be used: {error}")).hint("sage serve --port 7243")
        }
        _ => Failure::failed(format!("cannot listen on 127.0.0.1:{port}: {error}")),
    }
}

fn tell(url: &str, args: &Args, card: &Card) -> Result<(), Failure> {
    let file = args.token_file.as_deref().unwrap_or(card.path());
    if args.json {
        return print_json(&json!({"type": "serving", "url": url, "tokenIn": file}));
    }
    let file = file.display();
    let token = match args.token_file {
        Some(_) => format!("$(cat '{file}')"),
        None => format!("$(sed -n 's/.*\"token\":\"\\([^\"]*\\)\".*/\\1/p' '{file}')"),
    };
    print(format_args!("serving MCP at {url}; the token is in {file}\n"));
    print("\nClaude Code, in this project:\n");
    print(format_args!(
        "  claude mcp add --transport http sage {url} --header \"Authorization: Bearer {token}\"\n"
    ));
    print("\nEnd with Ctrl-C; runs in the background go on without it.\n");
    Ok(())
}

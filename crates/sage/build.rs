//! Puts the functions that a small run needs side by side in the executable.
//!
//! A run of one step executes less than 2 MB of code out of 39. Scattered, each function costs the 64 KiB of pages
//! that the kernel maps around it, 27 MB in all; side by side they cost 14 MB. `link-order.txt` lists them
//! (`tools/link-order` makes it). Names that this compiler does not produce are ignored by the linker, so an outdated
//! list costs memory and nothing else.

use std::path::Path;
use std::process::{Command, Stdio};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=link-order.txt");
    let order = Path::new(&variable("CARGO_MANIFEST_DIR")).join("link-order.txt");
    let flags =
        [format!("-Wl,--symbol-ordering-file={}", order.display()), "-Wl,--no-warn-symbol-ordering".into()];
    // Only lld knows these flags, and which linker is used depends on the machine's settings: so it is tried.
    if variable("PROFILE") == "release" && links(&flags) {
        for flag in flags {
            println!("cargo::rustc-link-arg-bins={flag}");
        }
    }
}

/// Whether an empty program can be linked with these flags.
fn links(flags: &[String]) -> bool {
    let program = Path::new(&variable("OUT_DIR")).join("empty.rs");
    if std::fs::write(&program, "fn main() {}").is_err() {
        return false;
    }
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.arg(&program).arg("-o").arg(program.with_extension("bin")).args(["--target", &variable("TARGET")]);
    rustc.args(variable("CARGO_ENCODED_RUSTFLAGS").split('\x1f').filter(|flag| !flag.is_empty()));
    if let Ok(linker) = std::env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    rustc.args(flags.iter().map(|flag| format!("-Clink-arg={flag}")));
    rustc.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

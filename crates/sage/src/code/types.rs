//! `.sage/types`: what an editor and `tsc` need to check code: the words of Sage, and the tools of all servers.
//!
//! ```text
//! .sage/types/sage.d.ts  code.d.ts  tsconfig.json  servers/<server>/index.ts  servers/<server>/<function>.ts
//! .sage/tsconfig.json    the nearest one above templates and skills, so that editors find all of this
//! ```
//! Everything in it is made again each time; nothing of it belongs into git.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use sage_fence::private;
use sage_script::tools::ToolDef;
use sage_script::{code, typing};
use serde_json::{Value, json};

/// Writes all of it and returns the folder. `servers` is `None` where they were not asked: what is there stays.
pub fn write(sage_dir: &Path, servers: Option<&[ToolDef]>) -> io::Result<PathBuf> {
    let dir = sage_dir.join("types");
    private::create_dir_all(&dir)?;
    put(&dir.join(".gitignore"), "*\n")?;
    put(&dir.join("sage.d.ts"), sage_script::DECLARATIONS)?;
    put(&dir.join("code.d.ts"), code::DECLARATIONS)?;
    put(&dir.join("tsconfig.json"), &pretty(&json!({"compilerOptions": options(), "include": ["*.d.ts"]})))?;
    write_editor_config(&sage_dir.join("tsconfig.json"))?;
    if let Some(catalogue) = servers {
        write_servers(&dir.join("servers"), catalogue)?;
    }
    Ok(dir)
}

/// A larger one is not read, and not ours.
const MAX_BYTES: u64 = 1 << 20;

/// The first line of the file that editors find: one without it is the user's, and stays.
const OURS: &str = "// Written by `sage check`; without this line it is yours.\n";

fn write_editor_config(path: &Path) -> io::Result<()> {
    match private::read_text(path, MAX_BYTES) {
        Ok(text) if !text.starts_with(OURS) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => return Ok(()),
        _ => {}
    }
    let include = ["types/*.d.ts", "templates/**/*.ts", "skills/*/skill.ts"];
    let config = pretty(&json!({"extends": "./types/tsconfig.json", "include": include}));
    put(path, &format!("{OURS}{config}"))
}

/// What `tsc` is given for some files.
pub fn project(dir: &Path, files: &[PathBuf]) -> io::Result<PathBuf> {
    let mut all = vec![dir.join("sage.d.ts"), dir.join("code.d.ts")];
    all.extend_from_slice(files);
    let path = dir.join("tsconfig.check.json");
    put(&path, &pretty(&json!({"extends": "./tsconfig.json", "include": [], "files": all})))?;
    Ok(path)
}

/// As strict as what the engine takes: only types that can be taken away. What a call rejects with is an error, so
/// `catch (error)` needs no cast.
fn options() -> Value {
    json!({
        "target": "ES2023", "lib": ["ES2023"], "module": "ESNext", "moduleResolution": "bundler",
        "moduleDetection": "force", "strict": true, "useUnknownInCatchVariables": false, "noEmit": true, "skipLibCheck": true, "types": [],
        "erasableSyntaxOnly": true, "verbatimModuleSyntax": true, "allowImportingTsExtensions": true,
        "paths": {
            "servers/*": ["./servers/*/index.ts", "./servers/*.ts"],
            "skills/*": ["../skills/*/skill.ts"],
        },
    })
}

fn write_servers(dir: &Path, catalogue: &[ToolDef]) -> io::Result<()> {
    let servers = typing::servers(catalogue);
    let mut kept: BTreeSet<PathBuf> = BTreeSet::new();
    for server in &servers {
        let folder = dir.join(&server.module);
        private::create_dir_all(&folder)?;
        let mut texts = vec![("index".to_string(), typing::index(server))];
        texts.extend(
            server.functions.iter().map(|function| {
                (function.name.clone(), typing::declare(&catalogue[function.index], function))
            }),
        );
        for (name, text) in texts {
            let path = folder.join(format!("{name}.ts"));
            put(&path, &text)?;
            kept.insert(path);
        }
    }
    forget(dir, &kept);
    Ok(())
}

/// Tools that are gone must not be offered by an editor.
fn forget(dir: &Path, kept: &BTreeSet<PathBuf>) {
    let all = |dir: &Path| -> Vec<PathBuf> {
        private::list(dir).unwrap_or_default().into_iter().map(|entry| dir.join(entry.name)).collect()
    };
    for folder in all(dir) {
        for file in all(&folder).iter().filter(|file| !kept.contains(*file)) {
            let _ = private::remove_file(file);
        }
        // Only where it is empty.
        let _ = private::remove_dir(&folder);
    }
}

/// Only what changed is written: editors watch these files.
fn put(path: &Path, text: &str) -> io::Result<()> {
    match private::read_text(path, text.len() as u64) {
        Ok(same) if same == text => Ok(()),
        _ => private::write(path, text.as_bytes()),
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

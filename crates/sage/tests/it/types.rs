//! TypeScript of workflows: the types are there for editors, and the README's own code and the examples pass them.
//!
//! `tsc` comes from npm (`./test` installs it into the target directory); where it is not, the tests that need it
//! say so and end.

use std::path::{Path, PathBuf};

use crate::dsl::{Outcome, Sage};
use crate::examples::copy_named;

/// The folder with `tsc`.
pub fn tsc() -> Option<PathBuf> {
    let given = std::env::var_os("SAGE_TEST_TS").map(PathBuf::from);
    let exe = PathBuf::from(env!("CARGO_BIN_EXE_sage"));
    let beside = exe.ancestors().nth(2).map(|dir| dir.join("tools/ts/node_modules/.bin"));
    let found = given.or(beside).filter(|dir| dir.join("tsc").exists());
    if found.is_none() {
        println!("skipped: the TypeScript compiler is not installed (./test does)");
    }
    found
}

/// `sage check` with a compiler on the path and none in the project.
fn check(sage: &Sage, tsc: &Path, files: &[&str]) -> Outcome {
    let path = format!("{}:{}", tsc.display(), std::env::var("PATH").unwrap_or_default());
    sage.args(["check"].iter().chain(files)).env("PATH", path).run()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// The `ts` blocks of the README.
fn readme() -> Vec<String> {
    let text = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let blocks = text.split("```ts\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_string()).collect()
}

/// A server with the tools that the README's code imports.
const SERVER: &str = r#"
import json, sys
text = {"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]}
path = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
tools = [{"name": name, "inputSchema": path, "outputSchema": text} for name in ("list_directory", "read_text_file")]
for line in sys.stdin:
    call = json.loads(line)
    if "id" not in call:
        continue
    answer = {"jsonrpc": "2.0", "id": call["id"]}
    if call["method"] == "initialize":
        version = call["params"]["protocolVersion"]
        answer["result"] = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "files", "version": "1"}}
    elif call["method"] == "tools/list":
        answer["result"] = {"tools": tools}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"#;

// covers: R21, R6
#[test]
fn the_code_of_the_readme_has_right_types() {
    let Some(tsc) = tsc() else { return };
    let blocks = readme();
    assert_eq!(blocks.len(), 2, "a workflow, and code for tools");
    let sage = Sage::new();
    sage.write("server.py", SERVER);
    sage.write("sage.toml", "[mcp.files]\ncommand = \"python3\"\nargs = [\"server.py\"]\n");
    sage.write(".sage/templates/mend.ts", &blocks[0]);
    sage.write("code.ts", &blocks[1]);
    check(&sage, &tsc, &[]).exit(0).stdout_has("1 file: nothing wrong");
    check(&sage, &tsc, &["code.ts"]).exit(0).stdout_has("1 file: nothing wrong");
    // The check is one: what is wrong is found.
    sage.write(".sage/templates/mend.ts", blocks[0].replace("sage.log(", "sage.lgo("));
    check(&sage, &tsc, &[]).exit(2).stderr_has("mend.ts:").stderr_has("'lgo' does not exist");
}

// covers: R21, R6
#[test]
fn the_examples_have_right_types() {
    let Some(tsc) = tsc() else { return };
    let sage = copy_named("flows");
    check(&sage, &tsc, &[]).exit(0).stdout_has("3 files: nothing wrong");
    check(&sage, &tsc, &[".sage/templates/lib/enough.ts"]).exit(0);
}

/// An editor looks for the nearest `tsconfig.json` above the file.
// covers: R21
#[test]
fn an_editor_finds_the_types_without_a_compiler() {
    for first in ["init", "check --syntax"] {
        let sage = Sage::new();
        sage.write(".sage/templates/w.ts", "export default async (sage: Sage) => sage.title;\n");
        sage.args(first.split(' ')).env("PATH", "/nowhere").run().exit(0);
        let config = std::fs::read_to_string(sage.path(".sage/tsconfig.json")).unwrap();
        assert!(config.contains("templates/**/*.ts") && config.contains("types/*.d.ts"), "{config}");
        let types = std::fs::read_to_string(sage.path(".sage/types/sage.d.ts")).unwrap();
        assert!(types.contains("type Sage = import(\"sage\").Sage;"), "{types}");
    }
    // One that is the user's own stays.
    let sage = Sage::new();
    sage.write(".sage/tsconfig.json", "{}\n");
    sage.sage("check --syntax").exit(0);
    assert_eq!(sage.lines(".sage/tsconfig.json"), ["{}"]);
    let Some(tsc) = tsc() else { return };
    let sage = Sage::new();
    sage.write(".sage/templates/w.ts", "export default async (sage: Sage) => sage.title;\n");
    sage.sage("check --syntax").exit(0);
    let command =
        std::process::Command::new(tsc.join("tsc")).arg("-p").arg(sage.path(".sage")).output().unwrap();
    assert!(command.status.success(), "{}", String::from_utf8_lossy(&command.stdout));
}

// covers: R21, R6
#[test]
fn check_finds_what_a_run_would_refuse() {
    let sage = Sage::new();
    let table = [
        ("export const a = 1;\n", "there is no workflow in this file"),
        ("import fs from \"node:fs\";\nexport default async () => fs;\n", "workflows have no packages"),
        ("import { a } from \"./lost.ts\";\nexport default async () => a;\n", "there is no file `./lost.ts`"),
        (
            "import { b } from \"../../sub/b.ts\";\nexport default async () => b;\n",
            "is outside of the workflow's folder",
        ),
    ];
    sage.write("sub/b.ts", "export const b = 1;\n");
    for (text, wrong) in table {
        sage.write(".sage/templates/w.ts", text);
        for command in ["check --syntax", "validate w", "run x -t w"] {
            sage.sage(command).exit(2).stderr_has(wrong).stderr_has("w.ts:1:");
        }
    }
    // A module of a folder below may go up as far as the workflow's own.
    sage.write(".sage/templates/w.ts", "import { c } from \"./lib/c.ts\";\nexport default async () => c;\n");
    sage.write(".sage/templates/lib/c.ts", "import { d } from \"../d.js\";\nexport const c = d;\n");
    sage.write(".sage/templates/d.js", "export const d = 1;\n");
    sage.sage("validate w").exit(0);
    sage.sage("check --syntax .sage/templates/w.ts").exit(0);
    sage.write(".sage/templates/lib/c.ts", "import { b } from \"../../../sub/b.ts\";\nexport const c = b;\n");
    sage.sage("validate w")
        .exit(2)
        .stderr_has("lib/c.ts:1:")
        .stderr_has("is outside of the workflow's folder");
}

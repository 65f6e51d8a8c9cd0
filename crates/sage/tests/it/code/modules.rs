//! Imported modules: part of the run from its beginning.

use serde_json::json;

use super::{ran, value};
use crate::dsl::Sage;

const MAIN: &str = r#"
import { twice } from "./lib.ts";
import type { Kind } from "./lib.ts";
import * as deep from "./parts/deep.ts";

export default async (sage, input) => {
  const kind: Kind = "a";
  const said = await sage.shell(`echo ${twice(kind)} >> ran; echo ${deep.name}`);
  await sage.approve("go on?");
  await sage.shell(`echo ${twice("b")} >> ran`);
  return [twice(kind), said.stdout.trim()];
};
"#;

fn project() -> Sage {
    let sage = Sage::new().code("t", MAIN);
    sage.write(
        ".sage/templates/lib.ts",
        "export type Kind = \"a\" | \"b\";\nexport const twice = (text: Kind): string => text + text;\n",
    );
    sage.write(
        ".sage/templates/parts/deep.ts",
        "import { twice } from \"../lib.ts\";\nexport const name = twice(\"a\") + \"!\";\n",
    );
    sage
}

// covers: R21, R5
#[test]
fn a_module_stays_as_it_was_when_the_run_began() {
    let sage = project();
    sage.sage("run x -t t").exit(4);
    sage.write(".sage/templates/lib.ts", "export const twice = (text) => text + '-' + text;\n");
    sage.sage("approve x").exit(0);
    sage.sage("resume x").exit(0).stderr_has("has changed").stderr_has("sage resume x -t");
    assert_eq!(ran(&sage), ["aa", "bb"]);
    assert_eq!(value(&sage), json!(["aa", "aa!"]));
    // Taken on purpose, the change runs what it changes.
    sage.sage("resume x -t t").exit(0);
    assert_eq!(ran(&sage), ["a-a", "aa", "b-b", "bb"]);
    assert_eq!(value(&sage), json!(["a-a", "a-a!"]));
}

// covers: R21, R5
#[test]
fn a_run_needs_its_files_no_more() {
    let sage = project();
    sage.sage("run x -t t").exit(4);
    std::fs::remove_dir_all(sage.path(".sage/templates")).unwrap();
    sage.sage("approve x").exit(0);
    sage.sage("resume x").exit(0);
    assert_eq!(value(&sage), json!(["aa", "aa!"]));
}

// covers: R21
#[test]
fn a_module_is_checked_before_anything_runs() {
    let sage = project();
    sage.write(".sage/templates/lib.ts", "export const twice = (text: string => text;\n");
    sage.sage("run x -t t").exit(2).stderr_has("lib.ts:1:");
    sage.sage("validate t").exit(2).stderr_has("lib.ts:1:");
    assert!(ran(&sage).is_empty());
}

// covers: R21, R3
#[test]
fn a_module_that_is_not_there_is_shown_before_anything_runs() {
    let sage = Sage::new().code("t", "import { a } from \"./nowhere.ts\";\nexport default async () => a;\n");
    for command in ["validate t", "run x -t t"] {
        sage.sage(command).exit(2).stderr_has("no file `./nowhere.ts`").stderr_has("t.ts:1:20");
    }
    let sage = project();
    sage.write(".sage/templates/parts/deep.ts", "import \"./deeper.ts\";\nexport const name = 1;\n");
    sage.sage("run x -t t").exit(2).stderr_has(".sage/templates/parts/deep.ts:1:9");
    let sage = Sage::new().code("t", "import fs from \"node:fs\";\nexport default async () => fs;\n");
    let told = sage.sage("run x -t t");
    assert!([1, 2].contains(&told.code), "{}", told.code);
    let text = told.stdout + &told.stderr;
    assert!(text.contains("node:fs"), "{text}");
}

// covers: R21
#[test]
fn modules_are_no_workflows_by_themselves() {
    let sage = project();
    let told = sage.sage("run x -t lib");
    assert_ne!(told.code, 0);
    let text = told.stdout + &told.stderr;
    assert!(text.contains("export default"), "{text}");
}

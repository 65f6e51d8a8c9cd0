//! Files and images that belong to a prompt reach the agent, and their content is part of the step's key.

use sage_agents::fake_llm::FakeLlm;
use serde_json::{Value, json};

use crate::dsl::Sage;
use crate::real_agents::project;

/// A whole picture of four pixels.
const PIXEL: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00,
    0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x08, 0x02, 0x00, 0x00, 0x00, 0xfd, 0xd4, 0x9a, 0x73, 0x00,
    0x00, 0x00, 0x12, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0xc0, 0x00, 0xc2, 0x0c,
    0xff, 0x81, 0x00, 0x00, 0x1f, 0xee, 0x05, 0xfb, 0x0b, 0xd9, 0x68, 0x8b, 0x00, 0x00, 0x00, 0x00, 0x49,
    0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];
/// The same in base64, up to where encoders may differ.
const PIXEL_BASE64: &str = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91Jpz";

const STEP: &str = "name: t\nphases:\n  - id: p\n    operations: { id: one, type: agent, AGENT prompt: look, files: FILES }\n";

fn template(agent: &str, files: &str) -> String {
    STEP.replace("AGENT", agent).replace("FILES", files)
}

const SHOWS: &str = "agent: command, params: { command: [sh, -c, 'cat \"$SAGE_INPUT\"'] },";

// covers: R6
#[test]
fn a_program_finds_its_files_and_a_changed_one_runs_the_step_again() {
    let sage = Sage::new().template("t", &template(SHOWS, "[docs/a.md, \"{{ feature }}.png\"]"));
    sage.write("docs/a.md", "first");
    sage.write("x.png", PIXEL);
    sage.sage("run x -t t --quiet").exit(0);
    let input: Value =
        serde_json::from_str(sage.results("x")[0]["results"]["one"].as_str().unwrap()).unwrap();
    let files = input["files"].as_array().unwrap();
    assert_eq!(
        (&files[0]["path"], &files[1]["mediaType"]),
        (&json!("docs/a.md"), &json!("image/png")),
        "{input}"
    );
    assert_eq!(std::fs::read(files[1]["file"].as_str().unwrap()).unwrap(), PIXEL);
    assert_eq!(input["params"]["files"], json!(["docs/a.md", "x.png"]));
    // The same content is the same step, another one is another.
    sage.write("docs/a.md", "first");
    sage.sage("resume x -t t").exit(0).stdout_has("1 of 1 step reused");
    sage.write("docs/a.md", "second");
    sage.sage("resume x -t t --quiet").exit(0);
    sage.sage("explain x").exit(0).stdout_has("ran again, because this changed: files");
}

// covers: R6, R17
#[test]
fn a_file_that_cannot_be_given_names_the_step_and_the_path() {
    let sage = Sage::new().template("t", &template(SHOWS, "[docs/none.md]"));
    sage.sage("run a -t t").exit(1).stdout_has("p/one").stdout_has("`files`: `docs/none.md` does not exist");
    for (number, (path, content, why)) in [
        ("blob.bin", &b"\x00\x01\x02"[..], "is neither text nor an image nor a PDF"),
        ("long.txt", &vec![b'a'; (1 << 20) + 1], "at most 1 MiB of its kind fit a prompt"),
        (".sage/state/secret", b"x", "private"),
    ]
    .into_iter()
    .enumerate()
    {
        sage.write(path, content);
        sage.write(".sage/templates/t.yaml", template(SHOWS, &format!("[{path}]")));
        sage.sage(&format!("run b{number} -t t")).exit(1).stdout_has(why);
    }
    std::os::unix::fs::symlink("/etc/passwd", sage.path("link.txt")).unwrap();
    sage.write(".sage/templates/t.yaml", template(SHOWS, "[link.txt]"));
    sage.sage("run c -t t").exit(1).stdout_has("`files`").stdout_has("outside");
    for (files, why) in [
        ("[../up.md]", "inside of the project"),
        ("[/etc/passwd]", "inside of the project"),
        ("7", "a list of paths"),
    ] {
        sage.write(".sage/templates/t.yaml", template(SHOWS, files));
        sage.sage("validate t").exit(2).stderr_has(why);
    }
    let twice = template("agent: fake, params: { files: [a.md], script: [{ say: x }] },", "[b.md]");
    sage.write(".sage/templates/t.yaml", twice);
    sage.sage("validate t").exit(2).stderr_has("`files` is given twice");
}

/// What the endpoint saw first.
fn first(model: &FakeLlm) -> String {
    model.prompts()[0].to_string()
}

fn with_files(sage: &Sage) {
    sage.write("docs/a.md", "Beware of the albatross.\n");
    sage.write("shot.png", PIXEL);
}

// covers: R16
#[test]
fn the_real_claude_sees_the_picture_and_the_text() {
    let model = FakeLlm::start(json!([{"text": "a pixel"}])).unwrap();
    let Some(sage) = project(&model, &template("agent: claude,", "[docs/a.md, shot.png]")) else { return };
    with_files(&sage);
    sage.sage("run x -t t --quiet").exit(0);
    let sent = first(&model);
    assert!(sent.contains(PIXEL_BASE64) && sent.contains("image/png"), "{sent}");
    assert!(sent.contains("Beware of the albatross") && sent.contains("docs/a.md"));
    assert_eq!(sage.results("x")[0]["results"]["one"], "a pixel");
}

// covers: R16
#[test]
fn the_real_codex_sees_the_picture_and_the_text() {
    let model = FakeLlm::start(json!([{"text": "a pixel"}])).unwrap();
    let Some(sage) = project(&model, &template("agent: codex,", "[docs/a.md, shot.png]")) else { return };
    with_files(&sage);
    sage.sage("run x -t t --quiet").exit(0);
    let sent = first(&model);
    assert!(sent.contains("input_image") && sent.contains("data:image/png;base64,"), "{sent}");
    assert!(sent.contains("Beware of the albatross"));
}

// covers: R16
#[test]
fn a_model_sees_the_picture_in_every_protocol_and_once() {
    for (api, block) in [
        ("anthropic", "\"type\":\"image\""),
        ("responses", "\"type\":\"input_image\""),
        ("chat", "\"type\":\"image_url\""),
    ] {
        let script = json!([{"tool": {"name": "list_files", "input": {}}}, {"text": "a pixel"}]);
        let model = FakeLlm::start(script).unwrap();
        let sage = Sage::new().template("t", &template("agent: model,", "[docs/a.md, shot.png]"));
        with_files(&sage);
        let config = format!(
            "[agents.model]\nadapter = \"llm\"\napi = \"{api}\"\nurl = \"{}\"\nmodel = \"m\"\n",
            model.url()
        );
        sage.write("sage.toml", config);
        sage.sage("run x -t t --quiet").exit(0);
        let sent = first(&model);
        assert!(sent.contains(block) && sent.contains(PIXEL_BASE64), "{api}: {sent}");
        assert!(sent.contains("Beware of the albatross"), "{api}");
        let last = model.prompts().last().unwrap().to_string();
        assert_eq!(last.matches(PIXEL_BASE64).count(), 1, "{api}");
    }
}

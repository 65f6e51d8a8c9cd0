//! The project's own settings, skills and agents for Claude Code: off by default, on for a step, and only if trusted.

use sage_agents::fake_llm::FakeLlm;
use serde_json::json;

use crate::dsl::Sage;
use crate::real_agents::project;

const STEP: &str = "name: t\nphases:\n  - id: p\n    operations: { id: one, type: agent, agent: claude, prompt: go, params: { project: PARTS } }\n";

fn template(parts: &str) -> String {
    STEP.replace("PARTS", parts)
}

fn files(sage: &Sage) {
    sage.write(
        ".claude/skills/deploy/SKILL.md",
        "---\nname: deploy\ndescription: Deploys with canaries\n---\nRun it\n",
    );
    sage.write(
        ".claude/agents/critic.md",
        "---\nname: critic\ndescription: Finds hidden faults\n---\nBe strict.\n",
    );
    let hook = format!("touch {}", sage.path("hooked").display());
    let hooks = json!({"UserPromptSubmit": [{"hooks": [{"type": "command", "command": hook}]}]});
    sage.write(".claude/settings.json", json!({"hooks": hooks}).to_string());
    sage.write("CLAUDE.md", "Always mention the albatross.\n");
}

// covers: R17
#[test]
fn files_of_the_project_need_trust() {
    let sage = Sage::untrusted().template("t", &template("true"));
    files(&sage);
    let refused = sage.sage("run x -t t").exit(2);
    let refused = refused.stderr_has("`.claude: claude.settings`").stderr_has("`.claude: claude.skills`");
    refused.stderr_has("hint: sage trust claude.settings claude.skills claude.agents");
    assert!(!sage.sage("trust --yes").exit(0).stdout.contains("claude."), "nobody has asked for them");
    sage.write(".sage/templates/t.yaml", template("[skills]"));
    sage.sage("run x -t t").exit(2).stderr_has("hint: sage trust claude.skills");
    let shown = sage.sage("trust claude.skills --yes").exit(0);
    shown.stdout_has("gives skills to Claude Code (1 file)");
    sage.sage("trust --list").exit(0).stdout_has("claude.skills");
    sage.write(".claude/skills/deploy/SKILL.md", "changed");
    sage.sage("run x -t t").exit(2).stderr_has("`.claude: claude.skills` is not trusted");
    for (parts, why) in [("[hooks]", "not one of settings, skills, agents"), ("1", "a list of its parts")] {
        sage.write(".sage/templates/t.yaml", template(parts));
        sage.sage("validate t").exit(2).stderr_has(why);
    }
    sage.write(".sage/templates/t.yaml", template("true").replace("agent: claude", "agent: codex"));
    sage.sage("validate t").exit(2).stderr_has("agent `codex` has no settings of the project");
}

// covers: R16, R17
#[test]
fn the_real_claude_sees_the_parts_that_its_step_switches_on() {
    let model = FakeLlm::start(json!([{"text": "done"}])).unwrap();
    let Some(sage) = project(&model, &template("false")) else { return };
    files(&sage);
    sage.sage("trust claude.settings claude.skills claude.agents --yes").exit(0);
    for (number, (parts, skill, agent, hook)) in [
        ("false", false, false, false),
        ("[skills]", true, false, false),
        ("[agents]", false, true, false),
        ("[skills, agents]", true, true, false),
        ("true", true, true, true),
    ]
    .into_iter()
    .enumerate()
    {
        sage.write(".sage/templates/t.yaml", template(parts));
        model.reset(json!([{"text": "done"}]).try_into().unwrap());
        sage.sage(&format!("run x{number} -t t --quiet")).exit(0);
        let sent = model.prompts()[0].to_string();
        assert_eq!(sent.contains("Deploys with canaries"), skill, "{parts}");
        assert_eq!(sent.contains("Finds hidden faults"), agent, "{parts}");
        assert_eq!(sage.path("hooked").exists(), hook, "{parts}");
        assert!(sent.contains("albatross"), "{parts}: CLAUDE.md is read in any case");
    }
    // It is part of what determines the result.
    sage.write(".sage/templates/t.yaml", template("[skills]"));
    sage.sage("resume x0 -t t --quiet").exit(0);
    sage.sage("explain x0").exit(0).stdout_has("params.project");
}

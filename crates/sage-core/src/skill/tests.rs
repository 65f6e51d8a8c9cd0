//! Reading `SKILL.md`, and how near skills are to what is asked.

use super::*;

fn problems(text: &str) -> Vec<String> {
    let (skill, problems) = read(text, "pdf");
    assert_eq!(skill.is_none(), problems.iter().any(Diagnostic::is_error), "{text}");
    problems.iter().map(|problem| format!("{}: {}", problem.field, problem.message)).collect()
}

// covers: R12
#[test]
fn a_skill_of_any_tool_is_read() {
    let text = "---\nname: pdf\ndescription: Reads PDF files.\nlicense: MIT\nallowed-tools: Bash(pdftotext:*) Read\nmodel: opus\ncontext: fork\nhooks: {a: [1]}\nmetadata:\n  tags: [documents, forms]\n  author: me\n---\n# PDF\n\nDo it.\n";
    let (skill, found) = read(text, "pdf");
    let skill = skill.unwrap();
    assert_eq!(found, []);
    assert_eq!((skill.name.as_str(), skill.description.as_str()), ("pdf", "Reads PDF files."));
    assert_eq!(skill.license.as_deref(), Some("MIT"));
    assert_eq!(skill.allowed_tools, ["Bash(pdftotext:*)", "Read"]);
    assert_eq!(skill.tags, ["documents", "forms"]);
    assert_eq!(skill.metadata["author"], "me");
    assert_eq!(skill.body, "# PDF\n\nDo it.\n");
    let windows =
        read("\u{FEFF}---\r\nname: pdf\r\ndescription: x\r\ntags: a, b c\r\n---\r\nbody\r\n", "pdf");
    assert_eq!(windows.0.unwrap().tags, ["a", "b c"]);
    assert!(read("---\nname: pdf\ndescription: x\n---", "pdf").0.is_some(), "without a body");
}

// covers: R12
#[test]
fn careless_front_matter_is_read_with_a_warning() {
    let text = "---\nname: pdf\ndescription: Use when: somebody asks #1\n---\nx";
    let (skill, found) = read(text, "pdf");
    assert_eq!(skill.unwrap().description, "Use when: somebody asks #1");
    assert_eq!(found.len(), 1);
    assert!(!found[0].is_error() && found[0].hint.is_some());
}

// covers: R12
#[test]
fn what_is_wrong_is_said_with_its_place() {
    assert_eq!(problems("# no front matter"), [": no front matter between two lines of `---`"]);
    assert_eq!(problems("---\nname: pdf\n"), [": no front matter between two lines of `---`"]);
    assert_eq!(problems("---\n\n---\n"), [": the front matter is empty"]);
    assert_eq!(
        problems("---\ndescription: ''\n---\n"),
        ["name: `name` is missing", "description: the description is empty"]
    );
    assert_eq!(
        problems("---\nname: 7\ndescription: [x]\n---\n"),
        ["name: `name` must be text, not a number", "description: `description` must be text, not a list"]
    );
    for bad in ["PDF", "p df", "-pdf", "pdf-", "p/df", "..", "p\u{e9}f"] {
        let found = problems(&format!("---\nname: \"{bad}\"\ndescription: x\n---\n"));
        assert_eq!(found, [format!("name: `{bad}` cannot be a skill's name")]);
    }
    assert_eq!(
        problems("---\nname: other\ndescription: x\n---\n"),
        ["name: the name `other` is not that of its folder, `pdf`"]
    );
    let long = format!("---\nname: pdf\ndescription: {}\n---\n", "x".repeat(1_025));
    assert_eq!(problems(&long), ["description: the description has 1025 characters, more than 1024"]);
    assert_eq!(problems(&"x".repeat(MAX_BYTES + 1)).len(), 1);
    let (_, found) = read("---\nname: pdf\ndescription: ''\n---\n", "pdf");
    let text = crate::source::SourceText::new("SKILL.md", "---\nname: pdf\ndescription: ''\n---\n");
    assert_eq!(text.locate(found[0].span), (3, 14), "places are those of the file");
    assert!(is_name(&"x".repeat(64)) && !is_name(&"x".repeat(65)) && !is_name(""));
}

fn skill(name: &str, tags: &[&str], description: &str) -> Skill {
    let tags = tags.iter().map(|tag| tag.to_string()).collect();
    Skill { name: name.into(), tags, description: description.into(), ..Skill::default() }
}

// covers: R12
#[test]
fn the_same_again_is_near_and_something_else_is_not() {
    let payment =
        skill("payment-processing", &["stripe"], "Payment processing with Stripe: charges, webhooks");
    let near = |title: &str| similarity(title, "", &payment);
    assert_eq!(near("payment processing"), 1.0);
    assert_eq!(near("Process payments"), 1.0);
    for title in ["payment processing with stripe", "add payment processing", "process payment webhooks"] {
        assert!(near(title) >= BY_ITSELF, "{title}: {}", near(title));
    }
    for title in [
        "process payments by invoice",
        "payment processing for refunds",
        "fix payment processing",
        "remove payment processing",
    ] {
        assert!((SHOWN..BY_ITSELF).contains(&near(title)), "{title}: {}", near(title));
    }
    for title in ["payment refunds", "image processing", "user login", "stripes on the dashboard background"]
    {
        assert!(near(title) < SHOWN, "{title}: {}", near(title));
    }
    for title in ["dark mode", "", "the of and", "display repayments"] {
        assert_eq!(near(title), 0.0, "{title}");
    }
}

// covers: R12
#[test]
fn further_text_only_brings_nearer_and_long_descriptions_do_not_fit_everything() {
    let payment = skill("payment-processing", &[], "Charges cards");
    let (alone, more) = (
        similarity("charge cards", "", &payment),
        similarity("charge cards", "payment processing", &payment),
    );
    assert_eq!(alone, 0.0, "nothing of its name is asked for");
    assert!(more >= BY_ITSELF, "{more}");
    let all = skill(
        "everything",
        &[],
        "payments login search upload dashboards reports caching queues email tests",
    );
    assert_eq!(similarity("login", "", &all), 0.0);
    let pdf = skill("pdf", &[], "Extract text and tables from PDF files, fill forms, merge documents");
    assert!(similarity("merge pdf files", "", &pdf) >= BY_ITSELF);
    assert!(similarity("generate pdf invoices for customers", "", &pdf) < SHOWN);
    let tagged = skill("deploy", &["kubernetes", "helm", "rollout"], "Ships it");
    assert!(similarity("kubernetes rollout", "", &tagged) >= SHOWN);
}

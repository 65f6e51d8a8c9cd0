//! Security and accessibility.

use super::{Project, finding, found};

// covers: R6
#[test]
fn known_weaknesses_are_found_in_each_language() {
    let project = Project::new(&[
        (
            "a.py",
            "def f(x, db):\n    eval(x)\n    eval('1 + 1')\n    subprocess.run(x, shell=True)\n    db.execute(f\"SELECT * FROM users WHERE id = {x}\")\n    db.execute(\"SELECT * FROM users WHERE id = ?\", x)\n    yaml.load(x)\n    yaml.load(x, Loader=yaml.SafeLoader)\n    requests.get(x, verify=False)\n",
        ),
        (
            "b.ts",
            "function g(x, req) {\n  element.innerHTML = x;\n  element.innerHTML = '<b>fixed</b>';\n  element.innerHTML = DOMPurify.sanitize(x);\n  exec(`ls ${x}`);\n  db.query('SELECT * FROM t WHERE a = ' + x);\n  path.join('/data', req.params.name);\n  const options = { rejectUnauthorized: false };\n}\n",
        ),
        (
            "c.go",
            "package c\nfunc h(x string) {\n\tdb.Query(fmt.Sprintf(\"SELECT * FROM t WHERE a = %s\", x))\n\tmd5.New()\n\tconfig := &tls.Config{InsecureSkipVerify: true}\n}\n",
        ),
        (
            "D.java",
            "class D {\n    void i(String x) {\n        statement.executeQuery(\"SELECT * FROM t WHERE a = '\" + x + \"'\");\n        MessageDigest.getInstance(\"MD5\");\n    }\n}\n",
        ),
        ("e.rs", "fn j() {\n    unsafe { go() }\n    // SAFETY: it is fine\n    unsafe { go() }\n}\n"),
        ("package.json", "{\"dependencies\": {\"a\": \"1\"}}"),
    ]);
    let report = project.run("audit.security");
    insta::assert_snapshot!(found(&report).join("\n"), @r#"
    1 unsafe block without a `SAFETY` comment @ e.rs:2
    Certificates are not checked in `a.py` @ a.py:9
    Certificates are not checked in `b.ts` @ b.ts:8
    Certificates are not checked in `c.go` @ c.go:5
    Evaluated text in `a.py` @ a.py:2
    Path from a request in `b.ts` @ b.ts:7
    SQL built from parts in `D.java` @ D.java:3
    SQL built from parts in `a.py` @ a.py:5
    SQL built from parts in `b.ts` @ b.ts:6
    SQL built from parts in `c.go` @ c.go:3
    Shell command built from parts in `b.ts` @ b.ts:5
    Shell command in `a.py` @ a.py:4
    Unescaped markup in `b.ts` @ b.ts:2
    Unsafe deserialisation in `a.py` @ a.py:7
    Weak hash in `D.java` @ D.java:4
    Weak hash in `c.go` @ c.go:4
    `package.json` has no lock file @ package.json
    "#);
}

// covers: R6
#[test]
fn a_secret_is_told_by_kind_and_place_and_never_shown() {
    let value = format!("{}{}", "ghp_", "Q7Rz9mK2xP4vL8wN3tB6yH1cD5fG0jS7aE2u9Z");
    let line = format!("TOKEN = \"{value}\"\n");
    let project = Project::new(&[("app/settings.py", &line), ("tests/settings.py", &line)]);
    let report = project.run("audit.security");
    assert_eq!(
        found(&report),
        [
            "1 possible secret in tests and examples @ tests/settings.py:1",
            "GitHub token in `app/settings.py` @ app/settings.py:1"
        ]
    );
    assert!(!report.to_string().contains(&value[4..12]));
    assert_eq!(finding(&report, "GitHub token")["relevance"], 0.75);
}

// covers: R6
#[test]
fn settings_of_a_machine_are_ignored_by_git_or_told() {
    let open = Project::new(&[(".env", "KEY=x\n"), ("a.py", "x = 1\n")]);
    assert_eq!(found(&open.run("audit.security")), ["`.env` is not ignored by git @ .env"]);
    let closed = Project::new(&[(".env", "KEY=x\n"), (".gitignore", ".env\n"), ("a.py", "x = 1\n")]);
    assert_eq!(found(&closed.run("audit.security")), Vec::<String>::new());
}

// covers: R6
#[test]
fn markup_that_not_everybody_can_use_is_found() {
    let project = Project::new(&[
        (
            "index.html",
            "<html>\n<head></head>\n<body>\n<img src=\"a.png\">\n<img src=\"b.png\" alt=\"\">\n<label for=\"name\">Name</label><input id=\"name\">\n<input name=\"mail\">\n<label>City <input></label>\n<button></button>\n<button>Go</button>\n<div onclick=\"go()\">Go</div>\n<a href=\"/\" tabindex=\"3\">Home</a>\n<p aria-lable=\"x\">x</p>\n</body>\n</html>\n",
        ),
        (
            "src/View.tsx",
            "export const View = (props) => (\n  <section>\n    <img src={props.src} />\n    <img {...props} />\n    <span onClick={() => go(1 > 0)}>x</span>\n    <span role=\"button\" tabIndex={0} onClick={go}>x</span>\n    <button onClick={go}><Icon /></button>\n    <button aria-label=\"close\"><Icon /></button>\n    <input type=\"hidden\" />\n    <button>{props.text}</button>\n  </section>\n);\n",
        ),
    ]);
    let report = project.run("audit.accessibility");
    insta::assert_snapshot!(found(&report).join("\n"), @r#"
    Button with only an icon in `src/View.tsx` @ src/View.tsx:7
    Button without text in `index.html` @ index.html:9
    Click on an element that is no control in `index.html` @ index.html:11
    Click on an element that is no control in `src/View.tsx` @ src/View.tsx:5
    Field without label in `index.html` @ index.html:7
    Image without alt in `index.html` @ index.html:4
    Image without alt in `src/View.tsx` @ src/View.tsx:3
    Page without language in `index.html` @ index.html:1
    Page without title in `index.html` @ index.html:1
    Positive tabindex in `index.html` @ index.html:12
    Unknown aria attribute in `index.html` @ index.html:13
    "#);
}

// covers: R6
#[test]
fn without_a_user_interface_there_is_nothing_to_audit() {
    let report = Project::new(&[("src/main.rs", "fn main() {}")]).run("audit.accessibility");
    assert!(report["summary"].as_str().unwrap().starts_with("There is no user interface"));
    assert_eq!(found(&report), Vec::<String>::new());
}

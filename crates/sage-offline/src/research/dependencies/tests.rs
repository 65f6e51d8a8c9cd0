use super::*;
use crate::research::tests::{project, write};

fn told(dir: &Path, places: &Places) -> Vec<String> {
    let tell = |package: &Package| {
        let documents: Vec<String> =
            package.documents(true).into_iter().map(|document| document.shown).collect();
        let (title, declared, about) = (package.title(), &package.declared, &package.description);
        format!("{} {title} <- {declared}: {about} [{}]", package.ecosystem, documents.join(" "))
    };
    packages(&Tree::read(dir).unwrap(), places).iter().map(tell).collect()
}

// covers: R6
#[test]
fn cargo_with_and_without_a_lock_file() {
    let dir = project(&[
        (
            "Cargo.toml",
            "[workspace]\nmembers = ['a']\n[workspace.dependencies]\nserde = \"1\"\nmine = { path = 'a' }\n",
        ),
        (
            "a/Cargo.toml",
            "[package]\nname = \"mine\"\n[dependencies]\nserde.workspace = true\nfast = { package = \"quick\", version = \"0.1\" }\ngone = '1'\n",
        ),
        (
            "Cargo.lock",
            "[[package]]\nname = \"serde\"\nversion = \"1.0.9\"\n\n[[package]]\nname = \"quick\"\nversion = \"0.1.2\"\n\n[[package]]\nname = \"quick\"\nversion = \"0.2.0\"\n",
        ),
    ]);
    let home = project(&[
        (
            "registry/src/index/serde-1.0.9/Cargo.toml",
            "[package]\nname = 'serde'\ndescription = \"Data in\nand out\"\n",
        ),
        ("registry/src/index/serde-1.0.9/README.md", "# serde"),
        ("registry/src/index/serde-1.0.9/CHANGELOG.md", "# 1"),
        ("registry/src/index/serde-1.0.9/src/lib.rs", "//! Serde"),
        ("registry/src/index/quick-0.1.2/README.md", "# quick"),
        ("registry/src/index/gone-along-2.0.0/README.md", ""),
    ]);
    let places = Places { cargo_home: Some(home.path().into()), ..Places::default() };
    let found = told(dir.path(), &places);
    assert_eq!(found[0], "cargo gone <- a/Cargo.toml:6:  []");
    assert_eq!(found[1], "cargo quick 0.1.2 <- a/Cargo.toml:5:  [quick-0.1.2/README.md]");
    let serde = "serde-1.0.9/CHANGELOG.md serde-1.0.9/README.md serde-1.0.9/src/lib.rs";
    // A line break within a one-line string is no TOML: what cannot be read is left out.
    assert_eq!(found[2], format!("cargo serde 1.0.9 <- Cargo.toml:4:  [{serde}]"));
    assert_eq!(found.len(), 3);
    std::fs::remove_file(dir.path().join("Cargo.lock")).unwrap();
    assert!(told(dir.path(), &places)[1].starts_with("cargo quick 0.1.2 "));
    assert_eq!(told(dir.path(), &Places::default())[2], "cargo serde <- Cargo.toml:4:  []");
}

// covers: R6
#[test]
fn npm_python_go_and_java() {
    let dir = project(&[
        ("package.json", "{\n \"dependencies\": {\n  \"axios\": \"^1\",\n  \"../up\": \"1\"\n }\n}"),
        (
            "node_modules/axios/package.json",
            "{\n \"version\": \"1.6.0\",\n \"description\": \"HTTP client\"}",
        ),
        ("node_modules/axios/readme.md", "# axios"),
        ("requirements.txt", "# all\nFlask_Login[x]>=1\n-r other.txt\nhttps://x.y/z.whl\n"),
        (
            ".venv/lib/python3.11/site-packages/flask_login-0.6.dist-info/METADATA",
            "Name: Flask-Login\nVersion: 0.6\nSummary: Sessions\n\n# Flask-Login\n",
        ),
        (
            "go.mod",
            "module x\nrequire (\n\tgithub.com/Azure/y v1.2.3\n\tz.org/a v1.0.0 // indirect\n)\nrequire b.org/c v2.0.0\n",
        ),
        (
            "pom.xml",
            "<project>\n<dependency>\n<artifactId>gson</artifactId>\n<version>2.1</version></dependency></project>",
        ),
        ("app/build.gradle", "dependencies {\n    implementation(\"org.x:okhttp:4.0\")\n}\n"),
    ]);
    write(dir.path(), &[("cache/github.com/!azure/y@v1.2.3/README.md", "# y")]);
    let places = Places { go_modules: Some(dir.path().join("cache")), ..Places::default() };
    let metadata = ".venv/lib/python3.11/site-packages/flask_login-0.6.dist-info/METADATA";
    assert_eq!(
        told(dir.path(), &places),
        [
            "npm axios 1.6.0 <- package.json:3: HTTP client [node_modules/axios/readme.md]".to_string(),
            format!("python flask-login 0.6 <- requirements.txt:2: Sessions [{metadata}]"),
            "go b.org/c v2.0.0 <- go.mod:6:  []".to_string(),
            "go github.com/Azure/y v1.2.3 <- go.mod:3:  [github.com/!azure/y@v1.2.3/README.md]".to_string(),
            "jvm gson 2.1 <- pom.xml:2:  []".to_string(),
            "jvm okhttp 4.0 <- app/build.gradle:2:  []".to_string(),
        ]
    );
}

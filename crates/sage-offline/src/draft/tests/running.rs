use serde_json::json;

use super::{ask, assert_line, project, shop};

// covers: R6
#[test]
fn settings_that_nothing_tells_of_are_found() {
    let dir = project(&[
        (
            "pay/payments.py",
            "import os\n\n\ndef charge():\n    return os.environ[\"PAY_KEY\"] + os.getenv(\"PAY_URL\")\n",
        ),
        (".env.example", "PAY_URL=https://example.com\n"),
        (".github/workflows/ci.yml", "run: pytest\n"),
        ("Dockerfile", "FROM python\n"),
        ("migrations/0001_start.sql", "create table x;\n"),
        ("tests/test_pay.py", "import pytest\n"),
        ("requirements.txt", "pytest\n"),
    ]);
    let result = ask("devops.prepare", &dir, "payment").done();
    let titles: Vec<&str> =
        result["findings"].as_array().unwrap().iter().map(|found| found["title"].as_str().unwrap()).collect();
    assert_eq!(titles[0], "`PAY_KEY` is read and nothing tells of it");
    assert!(!titles.iter().any(|title| title.contains("PAY_URL")), "{titles:?}");
    let document = result["document"].as_str().unwrap();
    assert_line(document, "| `.github/workflows/ci.yml` | CI | 1 |");
    assert_line(document, "| `Dockerfile` | container | 1 |");
    assert_line(document, "| `PAY_URL` | `pay/payments.py:5` | `.env.example` |");
    let asked = json!([
        "Does \"payment\" change what is stored? The newest migration is `migrations/0001_start.sql`."
    ]);
    assert_eq!(result["openQuestions"], asked);
}

// covers: R6
#[test]
fn a_project_without_ci_is_told_so() {
    let result = ask("devops.prepare", &shop(), "payment processing").done();
    assert_eq!(result["findings"][0]["title"], "No CI file: nobody but people runs the tests");
    assert_eq!(ask("devops.prepare", &project(&[]), "x").done()["findings"], json!([]));
}

//! Which files are tests, by what the languages' tools look for.

/// Whether a path is one of a test or of what tests use.
pub(crate) fn is_test_path(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let named = ["tests", "test", "__tests__", "spec", "specs", "testing", "testdata", "fixtures", "e2e"];
    if folders.split('/').any(|folder| named.contains(&folder)) {
        return true;
    }
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let java = path.ends_with(".java")
        && (stem.ends_with("Test") || stem.ends_with("Tests") || stem.ends_with("IT"));
    stem == "tests"
        || stem == "conftest"
        || stem.ends_with("_test")
        || stem.ends_with("_tests")
        || stem.ends_with(".test")
        || stem.ends_with(".spec")
        || stem.ends_with(".stories")
        || (name.ends_with(".py") && stem.starts_with("test_"))
        || java
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_known_by_name_and_folder() {
        let tests = ["tests/a.rs", "src/x/tests.rs", "a_test.go", "test_x.py", "a/b.spec.ts", "FooTest.java"];
        let others = ["src/test_bed.rs", "src/latest.rs", "Contest.java", "src/protest.py", "attest.go"];
        assert!(tests.iter().all(|path| is_test_path(path)));
        assert_eq!(others.iter().filter(|path| is_test_path(path)).count(), 0);
    }
}

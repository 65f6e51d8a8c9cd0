//! Tools of which one or two files say what is run.

use super::Gather;

impl Gather<'_> {
    pub(super) fn others(&mut self, folder: &str, program: &str) {
        let files: &[&str] = match program {
            "rake" | "rspec" | "bundle" | "rails" | "ruby" => &["Rakefile", ".rspec", ".rspec-local"],
            "phpunit" | "composer" | "php" | "pest" => {
                &["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"]
            }
            "deno" => &["deno.json", "deno.jsonc"],
            "bats" => &[".batsrc"],
            "task" => &["Taskfile.yml", "Taskfile.yaml"],
            "dotnet" => &[".runsettings"],
            "docker" | "docker-compose" => {
                &["Dockerfile", "docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml"]
            }
            _ => &[],
        };
        self.whole_of(folder, files);
        if ["cmake", "ctest"].contains(&program) {
            let any = |words: &[&str], line: &str| words.iter().any(|word| line.contains(word));
            let tests = ["add_test", "discover_tests", "enable_testing", "add_subdirectory"];
            self.lines(folder, &["CMakeLists.txt"], &|line| any(&tests, line), true);
            let off = ["will_fail", "disabled", "ctest_custom", "return("];
            self.lines(folder, &["CMakeLists.txt"], &|line| any(&off, line), false);
        }
    }
}

//! Maven and Gradle: lines that leave tests out, modules, and the files beside the wrapper.

use super::Gather;

const SETTINGS: &[&str] =
    &[".mvn/maven.config", ".mvn/jvm.config", ".mvn/extensions.xml", "gradle.properties", "mvnw", "gradlew"];
/// Parts of lines, in small letters.
const OFF: &[&str] = &[
    "skip",
    "exclude",
    "testfailureignore",
    "ignorefailures",
    "enabled",
    "onlyif",
    "filter",
    "failonno",
    "failifno",
    "<include",
    "<groups>",
    "<test>",
    "testsourcedirectory",
];
const BUILD_FILES: &[&str] = &["pom.xml", "build.gradle", "build.gradle.kts"];
const MODULES: &[&str] = &["pom.xml", "settings.gradle", "settings.gradle.kts"];

impl Gather<'_> {
    pub(super) fn jvm(&mut self, folder: &str) {
        self.whole_of(folder, SETTINGS);
        self.lines(folder, BUILD_FILES, &|line| OFF.iter().any(|word| line.contains(word)), false);
        self.lines(folder, MODULES, &|line| line.contains("<module>") || line.contains("include"), true);
    }

    /// Lines of files of these names: those that must stay, or those that nobody may add.
    pub(super) fn lines(
        &mut self,
        folder: &str,
        names: &[&str],
        is_meant: &dyn Fn(&str) -> bool,
        stay: bool,
    ) {
        let paths: Vec<String> = names.iter().flat_map(|name| self.below(folder, name)).collect();
        for path in paths {
            let text = self.text(&path).unwrap_or_default().to_lowercase();
            let facts = self.facts(&path);
            for line in text.lines().map(str::trim).filter(|line| is_meant(line)) {
                if stay { facts.keep(line) } else { facts.bar(line) }
            }
        }
    }
}

//! Java and Kotlin: names and versions only; the archives hold no documents.

use std::collections::BTreeMap;

use super::{Package, manifests};
use crate::walk::Tree;

pub(super) fn packages(tree: &Tree) -> Vec<Package> {
    let mut found: BTreeMap<String, Package> = BTreeMap::new();
    for (path, text) in manifests(tree, |name| name == "pom.xml") {
        for (line, name, version) in maven(&text) {
            add(&mut found, name, version, format!("{path}:{line}"));
        }
    }
    for (path, text) in manifests(tree, |name| name == "build.gradle" || name == "build.gradle.kts") {
        for (at, line) in text.lines().enumerate() {
            if let Some((name, version)) = gradle(line.trim()) {
                add(&mut found, name, version, format!("{path}:{}", at + 1));
            }
        }
    }
    found.into_values().collect()
}

fn add(found: &mut BTreeMap<String, Package>, name: &str, version: &str, declared: String) {
    let (name, version) = (name.to_string(), version.to_string());
    let package = Package { name: name.clone(), version, ecosystem: "jvm", declared, ..Package::default() };
    found.entry(name).or_insert(package);
}

/// Line, artifact and version of each `<dependency>`.
fn maven(text: &str) -> Vec<(usize, &str, &str)> {
    let mut found = Vec::new();
    let mut rest = 0;
    while let Some(start) = text[rest..].find("<dependency>").map(|at| rest + at) {
        let end = text[start..].find("</dependency>").map_or(text.len(), |at| start + at);
        let part = &text[start..end];
        if let Some(name) = element(part, "artifactId") {
            let line = text[..start].matches('\n').count() + 1;
            found.push((line, name, element(part, "version").unwrap_or_default()));
        }
        rest = end;
    }
    found
}

fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(&format!("<{name}>"))?;
    after.split_once('<').map(|(value, _)| value.trim())
}

/// `implementation 'group:name:1.0'`, with any quotes and brackets.
fn gradle(line: &str) -> Option<(&str, &str)> {
    let kinds = ["implementation", "api", "compileOnly", "runtimeOnly", "testImplementation", "kapt"];
    let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    let value = rest.split(['"', '\'']).nth(1)?;
    let mut parts = value.split(':').skip(1);
    Some((parts.next()?, parts.next().unwrap_or_default()))
}

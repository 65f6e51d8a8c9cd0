//! What the project has to measure with: benchmarks, and profiles that somebody took.

use super::super::look::{Look, count};
use super::tool;
use crate::finding::Finding;
use crate::walk::File;

pub(super) fn findings(look: &Look) -> Vec<Finding> {
    let of = |wanted: &dyn Fn(&File) -> bool| {
        let found = look.tree.files.iter().filter(|file| wanted(file)).map(|file| file.path.clone());
        found.collect::<Vec<_>>()
    };
    let benches = of(&is_benchmark);
    let profiles = of(&is_profile);
    let mut findings = Vec::new();
    if !benches.is_empty() {
        let title = format!("{} to measure with", count(benches.len(), "benchmark file"));
        let few = benches.into_iter().take(6).collect();
        findings.push(tool(look, title, "Run these before and after a change; they were not run here.", few));
    }
    if !profiles.is_empty() {
        let title = format!("{} of an earlier measurement", count(profiles.len(), "profile"));
        let few = profiles.into_iter().take(6).collect();
        findings.push(tool(
            look,
            title,
            "It says where time went when it was taken; it was not read here.",
            few,
        ));
    }
    findings
}

fn is_benchmark(file: &File) -> bool {
    let name = file.name();
    let code = super::super::grammar::canonical(file.extension()).is_some();
    let folder = file.path.split('/').any(|part| matches!(part, "benches" | "benchmarks" | "bench" | "jmh"));
    let named = name.contains(".bench.") || name.starts_with("bench_") || name.ends_with("Benchmark.java");
    code && (folder || named || name.ends_with("_bench_test.go"))
}

fn is_profile(file: &File) -> bool {
    let name = file.name();
    let ends = [".prof", ".pprof", ".cpuprofile", ".heapprofile", ".jfr", ".perf", ".lprof"];
    ends.iter().any(|end| name.ends_with(end)) || (name.contains("flamegraph") && name.ends_with(".svg"))
}

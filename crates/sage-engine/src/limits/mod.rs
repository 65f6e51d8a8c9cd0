//! Stub.
use sage_core::target::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
#[derive(Clone, Debug, Default)]
pub struct Limits;
#[derive(Clone, Debug, Default)]
pub struct LimitsConfig {
    pub targets: BTreeMap<String, TargetPolicy>,
    pub default_target: TargetPolicy,
    pub ageing_ms: u64,
}
impl Limits {
    pub fn shared(_: LimitsConfig, _: PathBuf, _: PathBuf) -> Limits {
        Limits
    }
    pub fn alone(_: LimitsConfig) -> Limits {
        Limits
    }
    pub fn join(&self, _run: &str) -> std::io::Result<Member> {
        Ok(Member)
    }
    pub fn overrides(&self) -> BTreeMap<String, u32> {
        BTreeMap::new()
    }
    pub fn targets(&self) -> Vec<(String, Target)> {
        Vec::new()
    }
    pub fn warning(&self) -> Option<String> {
        None
    }
}
#[derive(Debug)]
pub struct Member;
impl Member {
    pub fn ask(&self, _: &Want<'_>, _: u64) -> Answer {
        Answer::Granted(Permit)
    }
    pub fn withdraw(&self) {}
}
#[derive(Debug)]
pub struct PoolWant<'a> {
    pub pool: &'a str,
    pub units: u32,
    pub limit: u32,
}
#[derive(Debug)]
pub struct Want<'a> {
    pub pools: &'a [PoolWant<'a>],
    pub targets: &'a [String],
    pub priority: u8,
    pub estimate: Estimate,
}
#[derive(Debug)]
pub enum Answer {
    Granted(Permit),
    Refused(Refused),
}
#[derive(Clone, Debug, PartialEq)]
pub enum Refused {
    Pool { pool: String },
    Target { target: String, hold: Hold },
    Busy,
}
#[derive(Debug)]
pub struct Permit;
impl Permit {
    pub fn report(&self, _: &CallReport, _: u64) -> Vec<(String, Transition)> {
        Vec::new()
    }
}

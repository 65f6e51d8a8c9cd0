//! `sage skills save`: a draft of a skill from the facts of a run that succeeded.

use std::process::ExitCode;

use sage_core::run::{Run, Status};
use sage_core::skill::scan::{FindingKind, scan};
use sage_core::skill::{FILE, is_name};
use sage_core::source::SourceText;
use sage_core::verdict::Verdict;
use sage_engine::skills::{Draft, Origin, PlacedFinding, RESULT_FILE, Saved, Store};
use serde_json::{Value, json};

use super::super::context::Context;
use super::super::failure::Failure;
use super::super::{feature, print, print_json};
use super::facts::Facts;
use super::{draft, failure, finding_lines, known_secrets};
use crate::command_line::{sage, tell};
use crate::display::text::plural;

#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// The feature whose run succeeded: its title or slug
    pub feature: String,
    /// The skill's name; the feature's slug without it
    #[arg(long)]
    pub name: Option<String>,
    /// A step that matters; may be given several times; all without it
    #[arg(long, value_name = "STEP")]
    pub from: Vec<String>,
    /// What it does and when to use it
    #[arg(long)]
    pub description: Option<String>,
    /// Words under which it is found, with commas between them
    #[arg(long, value_delimiter = ',')]
    pub tags: Vec<String>,
    /// Leave out what the steps found, so that a repeated run finds it anew
    #[arg(long)]
    pub no_result: bool,
    /// Save it although something in it looks like orders to agents; secrets are never saved
    #[arg(long)]
    pub allow_findings: bool,
}

/// What became of a draft.
#[derive(Debug)]
pub struct Tried {
    pub name: String,
    /// `None` if it was refused because of what was found in it.
    pub saved: Option<Saved>,
    pub findings: Vec<PlacedFinding>,
    /// Things worth telling that are no errors.
    pub notes: Vec<String>,
}

impl Tried {
    fn has_secrets(&self) -> bool {
        self.findings.iter().any(|placed| placed.finding.kind == FindingKind::Secret)
    }
}

pub fn execute(context: &Context, store: &Store, args: Args, json: bool) -> Result<ExitCode, Failure> {
    let tried = save(context, store, &args)?;
    match &tried.saved {
        None if json => {
            print_json(&self::json(&store.index(), &tried)?)?;
            Ok(ExitCode::from(2))
        }
        None => Err(refused(&tried)),
        Some(saved) => {
            tried.notes.iter().for_each(|note| eprintln!("note: {note}"));
            told(&store.index(), &tried, saved, json)
        }
    }
}

/// Drafts a skill from a run and keeps it, unless something in it must not be kept.
pub fn save(context: &Context, store: &Store, args: &Args) -> Result<Tried, Failure> {
    let feature = feature(&args.feature)?;
    let engine = context.engine();
    let run = engine.read(&feature)?.run;
    refuse_unless_succeeded(&run)?;
    let name = name(args, &feature)?;
    let facts = Facts::gather(&run, &engine.blobs(&run.id), &args.from, &name)?;
    let (draft, notes) = written(args, &run, &facts, name)?;
    let findings = findings(&draft);
    let mut tried = Tried { name: draft.name.clone(), saved: None, findings, notes };
    if !tried.has_secrets() && (tried.findings.is_empty() || args.allow_findings) {
        tried.saved = Some(store.save(&draft).map_err(failure)?);
    }
    Ok(tried)
}

/// As programs see it.
pub fn json(index: &sage_engine::skills::Index, tried: &Tried) -> Result<Value, Failure> {
    let Tried { name, saved, findings, .. } = tried;
    let Some(saved) = saved else {
        return Ok(json!({"type": "skill", "name": name, "success": false, "findings": findings}));
    };
    let mut value = super::row(index, index.find(name).map_err(failure)?);
    value["type"] = "skill".into();
    value["success"] = true.into();
    value["changed"] = saved.changed.into();
    value["kept"] = saved.kept.as_ref().map_or(Value::Null, |path| index.shown(path).into());
    value["findings"] = json!(findings);
    Ok(value)
}

/// Only what is known to have worked is worth being repeated.
fn refuse_unless_succeeded(run: &Run) -> Result<(), Failure> {
    let feature = &run.feature;
    let state = match run.status {
        Status::Finished(Verdict::Succeeded) => return Ok(()),
        Status::Finished(verdict) => verdict.name(),
        status => status.name(),
    };
    let failure = Failure::usage(format!(
        "the run of `{feature}` is {state}; skills are saved only from runs that succeeded"
    ));
    Err(failure.hint(sage("status").arg(feature)))
}

fn name(args: &Args, feature: &str) -> Result<String, Failure> {
    let given = args.name.clone().unwrap_or_else(|| {
        let short: String = feature.chars().take(sage_core::skill::MAX_NAME).collect();
        short.trim_end_matches('-').to_string()
    });
    if !is_name(&given) {
        return Err(failure(sage_engine::skills::SkillError::Name(given.escape_debug().to_string())));
    }
    Ok(given)
}

fn written(args: &Args, run: &Run, facts: &Facts, name: String) -> Result<(Draft, Vec<String>), Failure> {
    let text = draft::text(run, facts, &name, args.description.as_deref());
    let (skill, problems) = sage_core::skill::read(&text, &name);
    if skill.is_none() {
        let source = SourceText::new(FILE, &text);
        let told: Vec<String> = problems.iter().map(|problem| source.show(problem).to_string()).collect();
        return Err(Failure::usage(told.join("").trim_end()).hint("sage skills save --help"));
    }
    let (result, notes) = if args.no_result { (None, Vec::new()) } else { facts.result() };
    let tags: Vec<String> =
        args.tags.iter().map(|tag| tag.trim().to_string()).filter(|tag| !tag.is_empty()).collect();
    let origin = Origin {
        run: run.id.clone(),
        feature: run.feature.clone(),
        template: run.template.name.clone(),
        steps: facts.steps.iter().map(|step| step.path.clone()).collect(),
    };
    Ok((Draft { name, text, result, script: None, tags, origin }, notes))
}

fn findings(draft: &Draft) -> Vec<PlacedFinding> {
    let known = known_secrets();
    let result = draft.result.as_ref().and_then(|value| serde_json::to_string_pretty(value).ok());
    let texts =
        [(FILE, Some(draft.text.clone())), (RESULT_FILE, result), ("tags", Some(draft.tags.join("\n")))];
    let mut found = Vec::new();
    for (file, text) in texts.into_iter().filter_map(|(file, text)| Some((file, text?))) {
        let placed = |finding| PlacedFinding { file: file.into(), finding };
        found.extend(scan(&text, &known).findings.into_iter().map(placed));
    }
    found
}

/// Why it was not saved.
pub fn refused(tried: &Tried) -> Failure {
    let secret = tried.has_secrets();
    let what = if secret { "it would hold secrets" } else { "it would hold orders to agents" };
    let lines = finding_lines(&tried.findings);
    let failure = Failure::usage(format!("`{}` was not saved: {what}{lines}", tried.name));
    match secret {
        true => failure.hint("keep them out of prompts and results, or choose other steps with --from"),
        false => failure.hint("--from <step> chooses other steps; --allow-findings saves it as it is"),
    }
}

fn told(
    index: &sage_engine::skills::Index,
    tried: &Tried,
    saved: &Saved,
    json: bool,
) -> Result<ExitCode, Failure> {
    if json {
        print_json(&self::json(index, tried)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (name, findings) = (&tried.name, &tried.findings);
    let listed = index.find(name).map_err(failure)?;
    let path = index.shown(&listed.file());
    match saved.changed {
        true => print(format_args!("saved {name}, version {}: {path}\n", saved.version)),
        false => print(format_args!("{name} is as it was, version {}: {path}\n", saved.version)),
    }
    if let Some(kept) = &saved.kept {
        eprintln!("note: the version before is kept in `{}`", index.shown(kept));
    }
    if !findings.is_empty() {
        eprintln!(
            "note: saved with {}:{}",
            plural(findings.len() as u64, "finding"),
            finding_lines(findings)
        );
    }
    if !listed.approved() {
        eprintln!("note: nobody uses it by itself before a person has read and approved it");
        tell(sage("skills approve").arg(name));
    }
    Ok(ExitCode::SUCCESS)
}

//! All skills that can be found from a project: which there are, which one wins, what is wrong with the rest.

use std::path::{Path, PathBuf};

use sage_core::skill::{FILE, MAX_BYTES, Skill, read};
use sage_core::source::SourceText;
use sage_fence::Fence;
use serde::Serialize;

use super::usage::State;
use super::{Approval, Content, Meta, Reuse, SkillError, Store, Times};
use crate::project::Project;

/// More folders than this in one place are no skills.
const MAX_SKILLS: usize = 1_000;

/// A directory that skills may lie in. Earlier places win.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub dir: PathBuf,
    /// How people call it.
    pub label: String,
    /// A folder of the project that leads out of it came with somebody's clone and is not read.
    pub in_project: bool,
}

impl Place {
    /// The project's places, then the user's.
    pub fn all(project: &Project, home: Option<&Path>, config: Option<&Path>) -> Vec<Place> {
        let inside = |dir: PathBuf, label: &str| Place { dir, label: label.into(), in_project: true };
        let outside = |dir: PathBuf, label: &str| Place { dir, label: label.into(), in_project: false };
        let mut places = vec![
            inside(project.dir.join("skills"), ".sage/skills"),
            inside(project.root.join(".agents/skills"), ".agents/skills"),
            inside(project.root.join(".claude/skills"), ".claude/skills"),
        ];
        if let Some(home) = home {
            places.push(outside(home.join(".claude/skills"), "~/.claude/skills"));
            places.push(outside(home.join(".agents/skills"), "~/.agents/skills"));
        }
        let config = config.map(Path::to_path_buf).or_else(|| Some(home?.join(".config")));
        places.extend(config.map(|dir| outside(dir.join("sage/skills"), "$XDG_CONFIG_HOME/sage/skills")));
        // Somebody may work in their home directory.
        let mut seen: Vec<PathBuf> = Vec::new();
        places.retain(|place| {
            !seen.contains(&place.dir) && {
                seen.push(place.dir.clone());
                true
            }
        });
        places
    }
}

/// A skill that can be used.
#[derive(Clone, Debug)]
pub struct Listed {
    pub skill: Skill,
    pub dir: PathBuf,
    /// The place's label.
    pub place: String,
    /// Of our own ones.
    pub meta: Option<Meta>,
    /// Others of the same name, which it hides.
    pub shadows: Vec<PathBuf>,
    pub times: Times,
    /// Of exactly this content.
    pub approval: Option<Approval>,
    /// It was approved once, but has changed since then.
    pub outdated: bool,
    /// Read where it is approved: what was approved is what is used.
    pub content: Option<Content>,
}

impl Listed {
    pub fn approved(&self) -> bool {
        self.approval.is_some()
    }

    pub fn version(&self) -> u32 {
        self.meta.as_ref().map_or(1, |meta| meta.version)
    }

    pub fn file(&self) -> PathBuf {
        self.dir.join(FILE)
    }
}

/// A folder that looks like a skill but cannot be used, or can with a warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub path: PathBuf,
    pub message: String,
    /// False for a warning.
    pub fatal: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Index {
    /// By name.
    pub skills: Vec<Listed>,
    pub problems: Vec<Problem>,
    pub reuse: Reuse,
    /// Paths are told relative to it.
    pub root: PathBuf,
}

impl Index {
    pub fn find(&self, name: &str) -> Result<&Listed, SkillError> {
        self.skills.iter().find(|listed| listed.skill.name == name).ok_or_else(|| {
            let names = self.skills.iter().map(|listed| listed.skill.name.as_str());
            let near = sage_core::diagnostic::did_you_mean(name, names);
            SkillError::Unknown { name: name.escape_debug().to_string(), near }
        })
    }

    /// A path for people: short where it is the project's.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}

impl Store {
    /// Looks at all places. Nothing is created, and what cannot be read is a problem of the result.
    pub fn index(&self) -> Index {
        let mut index = Index { root: self.project.root.clone(), ..Index::default() };
        let state = self.state().unwrap_or_else(|error| {
            let message = format!("{error}; approvals and statistics are taken as missing");
            index.problems.push(Problem { path: self.state_path(), message, fatal: false });
            State::default()
        });
        index.reuse = state.reuse();
        for place in &self.places {
            for name in folders(&place.dir) {
                let dir = place.dir.join(&name);
                match self.listed(place, &dir, &name, &state, &mut index.problems) {
                    Ok(Some(listed)) => index.add(listed),
                    Ok(None) => {}
                    Err(message) => {
                        index.problems.push(Problem { path: dir.join(FILE), message, fatal: true })
                    }
                }
            }
        }
        index.skills.sort_by(|a, b| a.skill.name.cmp(&b.skill.name));
        index
    }

    fn listed(
        &self,
        place: &Place,
        dir: &Path,
        name: &str,
        state: &State,
        problems: &mut Vec<Problem>,
    ) -> Result<Option<Listed>, String> {
        if !dir.join(FILE).exists() {
            return Ok(None);
        }
        if place.in_project && (self.leads_out(&place.dir) || leads_out(&place.dir, dir)) {
            return Err("its folder is a link that leads out of the project's skills; it is not read".into());
        }
        let file = dir.join(FILE);
        let real = dir.canonicalize().map_err(|error| error.to_string())?;
        let bytes = self.vfs.read(&real.join(FILE), MAX_BYTES as u64).map_err(|error| error.to_string())?;
        let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_string())?;
        let (skill, found) = read(&text, name);
        let source = SourceText::new(FILE, &text);
        let told: Vec<String> = found.iter().map(|problem| one_line(&source.show(problem))).collect();
        let Some(mut skill) = skill else { return Err(told.join("; ")) };
        let mut warn = |message: String| problems.push(Problem { path: file.clone(), message, fatal: false });
        told.into_iter().for_each(&mut warn);
        let meta = Meta::load(self.vfs.as_ref(), &real).unwrap_or_else(|why| {
            warn(format!("its sage.json cannot be read: {why}"));
            None
        });
        skill.tags.extend(meta.iter().flat_map(|meta| meta.tags.clone()));
        let content = state.approval(name).map(|_| Content::read(dir)).transpose();
        let content = content.unwrap_or_else(|error| {
            warn(error.to_string());
            None
        });
        let same = |approval: &&Approval| {
            content.as_ref().is_some_and(|it| it.sha.to_string() == approval.sha && it.skill_text() == text)
        };
        let approval = state.approval(name).filter(same).cloned();
        Ok(Some(Listed {
            outdated: state.approval(name).is_some() && approval.is_none(),
            content: content.filter(|_| approval.is_some()),
            times: state.times(name),
            skill,
            dir: dir.to_owned(),
            place: place.label.clone(),
            meta,
            shadows: Vec::new(),
            approval,
        }))
    }
}

impl Index {
    /// The first of a name wins; the others are told.
    fn add(&mut self, listed: Listed) {
        match self.skills.iter_mut().find(|first| first.skill.name == listed.skill.name) {
            Some(first) => first.shadows.push(listed.file()),
            None => self.skills.push(listed),
        }
    }
}

/// Names of the folders in a place, sorted; none if there is no such place. Hidden ones are no skills.
fn folders(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> =
        named.filter(|name| !name.starts_with('.') && dir.join(name).is_dir()).take(MAX_SKILLS).collect();
    names.sort_unstable();
    names
}

impl Store {
    /// A folder of skills that only seems to lie in the project.
    fn leads_out(&self, place: &Path) -> bool {
        place.starts_with(&self.project.root) && leads_out(&self.project.root, place)
    }
}

fn leads_out(place: &Path, dir: &Path) -> bool {
    !dir.exists() || Fence::new(place).locate(dir).is_err()
}

/// `3:14: the description is empty (say what it does)`
fn one_line(shown: &sage_core::diagnostic::Shown) -> String {
    let hint = shown.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{}:{}: {}{hint}", shown.line, shown.column, shown.message)
}

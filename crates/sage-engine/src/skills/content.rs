//! Everything in a skill's folder: what an approval is of, and what is looked through before.
//!
//! Links are not followed: they are part of the content by where they point, and told, because what they
//! point to can change without anybody noticing. `.versions` is the past and no part of it.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sage_core::digest::Digest;
use sage_core::skill::FILE;
use sage_core::skill::scan::{Finding, FindingKind, Known, scan};
use serde::Serialize;

use super::{RESULT_FILE, SCRIPT_FILE, SkillError, io_error};
use crate::vfs::open_regular;

pub(super) const VERSIONS: &str = ".versions";
const MAX_FILES: usize = 500;
pub(super) const MAX_BYTES: u64 = 16 << 20;
const MAX_DEPTH: usize = 8;

#[derive(Clone, Debug)]
pub struct Content {
    pub dir: PathBuf,
    /// Sorted by path.
    pub files: Vec<Entry>,
    pub bytes: u64,
    pub sha: Digest,
    skill: String,
    result: Option<Vec<u8>>,
    script: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// In the folder.
    pub path: String,
    pub bytes: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_to: Option<String>,
    #[serde(skip)]
    sha: Option<Digest>,
}

/// A finding with the file it is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlacedFinding {
    pub file: String,
    #[serde(flatten)]
    pub finding: Finding,
}

/// What looking through all files showed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Looked {
    pub findings: Vec<PlacedFinding>,
    /// Files that are no text, so that nobody looked into them.
    pub unread: Vec<String>,
}

impl Looked {
    pub fn has(&self, kind: FindingKind) -> bool {
        self.findings.iter().any(|placed| placed.finding.kind == kind)
    }
}

impl Content {
    pub fn read(dir: &Path) -> Result<Content, SkillError> {
        let mut content = Content {
            dir: dir.to_owned(),
            files: Vec::new(),
            bytes: 0,
            sha: Digest::ZERO,
            skill: String::new(),
            result: None,
            script: None,
        };
        // Where it lies may be a link of the user's own; what is in it is opened through none.
        let real = dir.canonicalize().map_err(|source| io_error("read", dir, source))?;
        let mut open = vec![(real, String::new(), 0)];
        while let Some((dir, prefix, depth)) = open.pop() {
            let entries = std::fs::read_dir(&dir).map_err(|source| io_error("read", &dir, source))?;
            for entry in entries {
                let path = entry.map_err(|source| io_error("read", &dir, source))?.path();
                let name = format!("{prefix}{}", path.file_name().unwrap_or_default().to_string_lossy());
                if name == VERSIONS {
                    continue;
                }
                let meta = path.symlink_metadata().map_err(|source| io_error("read", &path, source))?;
                if !meta.is_dir() {
                    content.take(&path, name, &meta)?;
                } else if depth < MAX_DEPTH {
                    open.push((path, format!("{name}/"), depth + 1));
                } else {
                    return Err(content.refused(format!("has folders more than {MAX_DEPTH} deep")));
                }
            }
        }
        content.files.sort_by(|a, b| a.path.cmp(&b.path));
        content.sha = content.digest();
        Ok(content)
    }

    fn take(&mut self, path: &Path, name: String, meta: &std::fs::Metadata) -> Result<(), SkillError> {
        if self.files.len() >= MAX_FILES {
            return Err(self.refused(format!("has more than {MAX_FILES} files")));
        }
        let failed = |source| io_error("read", path, source);
        let mut entry = Entry { path: name, bytes: 0, executable: false, link_to: None, sha: None };
        if meta.is_symlink() {
            let target = std::fs::read_link(path).map_err(failed)?;
            entry.link_to = Some(target.to_string_lossy().into_owned());
        } else {
            let mut bytes = Vec::new();
            let left = MAX_BYTES - self.bytes;
            let file: File = open_regular(path, OFlags::RDONLY).map_err(failed)?;
            file.take(left + 1).read_to_end(&mut bytes).map_err(failed)?;
            if bytes.len() as u64 > left {
                return Err(self.refused(format!("has more than {} MiB", MAX_BYTES >> 20)));
            }
            entry.bytes = bytes.len() as u64;
            entry.executable = meta.mode() & 0o111 != 0;
            entry.sha = Some(Digest::of(&bytes));
            self.bytes += entry.bytes;
            match entry.path.as_str() {
                FILE => self.skill = String::from_utf8_lossy(&bytes).into_owned(),
                RESULT_FILE => self.result = Some(bytes),
                SCRIPT_FILE => self.script = String::from_utf8(bytes).ok(),
                _ => {}
            }
        }
        self.files.push(entry);
        Ok(())
    }

    fn refused(&self, why: String) -> SkillError {
        SkillError::Content { path: self.dir.clone(), why }
    }

    /// Names, kinds and bytes; each part has a digest of its own, so that no two contents can look alike.
    fn digest(&self) -> Digest {
        let mut parts = Vec::with_capacity(self.files.len() * 3);
        for entry in &self.files {
            let kind = match &entry.link_to {
                Some(target) => format!("link {target}"),
                None => format!("file {}", entry.executable),
            };
            parts.extend([
                Digest::of(entry.path.as_bytes()),
                Digest::of(kind.as_bytes()),
                entry.sha.unwrap_or(Digest::ZERO),
            ]);
        }
        Digest::of_all(&parts)
    }

    /// The text of its `SKILL.md`.
    pub fn skill_text(&self) -> &str {
        &self.skill
    }

    /// What `result.json` holds, as it was when the digest was made.
    pub fn result(&self) -> Option<&[u8]> {
        self.result.as_deref()
    }

    /// The code of its `skill.ts`, as it was when the digest was made.
    pub fn script(&self) -> Option<&str> {
        self.script.as_deref()
    }

    pub fn has(&self, path: &str) -> bool {
        self.files.iter().any(|entry| entry.path == path)
    }

    /// The program of a skill that can be run: a file of its own, marked as executable.
    pub fn program(&self) -> Option<PathBuf> {
        let runs = |name: &&str| {
            self.files.iter().any(|entry| entry.path == **name && entry.executable && entry.link_to.is_none())
        };
        ["run.sh", "run"].iter().find(|name| runs(name)).map(|name| self.dir.join(name))
    }

    /// Looks through every file. Only what is still the content is looked at.
    pub fn look_through(&self, known: &[Known]) -> Result<Looked, SkillError> {
        let mut looked = Looked::default();
        for entry in &self.files {
            if let Some(target) = &entry.link_to {
                let why = format!(
                    "a link to `{}`: what it points to is not covered by an approval",
                    target.escape_debug()
                );
                let finding = Finding { line: 1, kind: FindingKind::Injection, why };
                looked.findings.push(PlacedFinding { file: entry.path.clone(), finding });
                continue;
            }
            let path = self.dir.join(&entry.path);
            let bytes = read_again(&path, entry)?;
            match std::str::from_utf8(&bytes) {
                Ok(text) if !text.contains('\0') => {
                    let found = scan(text, known).findings.into_iter();
                    looked
                        .findings
                        .extend(found.map(|finding| PlacedFinding { file: entry.path.clone(), finding }));
                }
                _ => looked.unread.push(entry.path.clone()),
            }
        }
        Ok(looked)
    }
}

fn read_again(path: &Path, entry: &Entry) -> Result<Vec<u8>, SkillError> {
    let failed = |source| io_error("read", path, source);
    let mut bytes = Vec::new();
    open_regular(path, OFlags::RDONLY)
        .map_err(failed)?
        .take(MAX_BYTES)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if entry.sha != Some(Digest::of(&bytes)) {
        return Err(SkillError::Content { path: path.to_owned(), why: "changed while it was read".into() });
    }
    Ok(bytes)
}

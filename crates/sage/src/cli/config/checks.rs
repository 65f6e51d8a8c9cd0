//! `[checks]`: how the project is built and tested, where its files do not say so or say it wrongly.
//!
//! ```toml
//! [checks]
//! test = "make test"                        # or a list; `false` if there is nothing to run
//! [checks.frontend]                         # of this part alone
//! build = ["cd web && npm run build"]
//! ```

use super::file::{File, Lines, PartFile};
use super::values::wrong;
use super::{Setting, pick};
use crate::cli::failure::Failure;

/// Shows what is set, and refuses what cannot be a command.
pub(super) fn check(settings: &mut Vec<Setting>, file: &File) -> Result<(), Failure> {
    for (name, part) in [
        ("checks", &file.checks.all),
        ("checks.backend", &file.checks.backend),
        ("checks.frontend", &file.checks.frontend),
    ] {
        for (what, lines) in [("build", &part.build), ("test", &part.test)] {
            let Some(lines) = lines else { continue };
            let key = format!("{name}.{what}");
            if matches!(lines, Lines::Switch(true)) {
                return Err(
                    wrong(&key, "`true` is not a command").hint(format!("[{name}] {what} = \"make {what}\""))
                );
            }
            pick(settings, &key, &[], Some(lines.text()), String::new());
        }
    }
    Ok(())
}

impl File {
    /// The commands of a check; an empty list if the project has none, `None` if nothing is said about it.
    pub fn check_commands(&self, what: &str, part: &str) -> Option<Vec<String>> {
        let of = |part: &PartFile| {
            let lines = if what == "build" { &part.build } else { &part.test };
            lines.as_ref().and_then(Lines::named)
        };
        let own = match part {
            "backend" => of(&self.checks.backend),
            "frontend" => of(&self.checks.frontend),
            _ => None,
        };
        own.or_else(|| of(&self.checks.all))
    }
}

impl Lines {
    fn text(&self) -> String {
        match self {
            Lines::Switch(on) => on.to_string(),
            Lines::One(line) => line.clone(),
            Lines::Many(lines) => lines.join("; "),
        }
    }

    /// Nothing between the quotes names nothing.
    fn named(&self) -> Option<Vec<String>> {
        let lines = match self {
            Lines::Switch(_) => return Some(Vec::new()),
            Lines::One(line) => vec![line.clone()],
            Lines::Many(lines) => lines.clone(),
        };
        let lines: Vec<String> = lines.into_iter().filter(|line| !line.trim().is_empty()).collect();
        Some(lines).filter(|lines| !lines.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> File {
        toml::from_str(text).unwrap()
    }

    // covers: P4
    #[test]
    fn a_part_has_its_own_commands_or_those_of_all() {
        let file =
            file("[checks]\nbuild = 'make'\ntest = ['a', ' ', 'b']\n[checks.frontend]\nbuild = false\n");
        assert_eq!(file.check_commands("build", "all"), Some(vec!["make".to_string()]));
        assert_eq!(file.check_commands("build", "backend"), Some(vec!["make".to_string()]));
        assert_eq!(file.check_commands("build", "frontend"), Some(vec![]), "there is nothing to build");
        assert_eq!(file.check_commands("test", "frontend"), Some(vec!["a".to_string(), "b".to_string()]));
    }

    // covers: P4
    #[test]
    fn an_empty_text_or_list_names_nothing() {
        for text in ["", "[checks]\ntest = ''\n", "[checks]\ntest = []\n"] {
            assert_eq!(file(text).check_commands("test", "all"), None, "{text}");
        }
        let refused = check(&mut Vec::new(), &file("[checks.backend]\nbuild = true\n")).unwrap_err();
        assert!(
            refused.message.contains("`checks.backend.build`: `true` is not a command"),
            "{}",
            refused.message
        );
    }
}

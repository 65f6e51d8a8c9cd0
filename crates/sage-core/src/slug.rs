//! Features: what the user works on, a title and the slug that names its files.
//!
//! A slug is safe in any path: `[a-z0-9][a-z0-9-]{0,99}`. Titles that look like an attempt to leave a
//! directory, or that hide characters from the reader, are refused and not repaired: a repaired name would be
//! one that the user never chose. Two titles may give one slug on purpose: they are the same feature.

use std::fmt;

/// Titles are shown and stored; more than this is a mistake (a pasted document).
pub const MAX_TITLE_BYTES: usize = 255;
/// Longest slug in bytes: with `workflow-` and `.json.bak` it stays under the 255 of a file name.
pub const MAX_SLUG_BYTES: usize = 100;

/// A title and its slug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    title: String,
    slug: String,
}

/// Why a name cannot be a feature's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("the feature's name is empty")]
    Empty,
    #[error("the feature's name has {bytes} bytes, more than {MAX_TITLE_BYTES}")]
    TooLong { bytes: usize },
    #[error("the feature's name has no letter a-z or digit in it, so it cannot name a file")]
    NothingLeft,
    #[error("the feature's name contains the invisible character U+{:04X}", u32::from(*character))]
    Invisible { character: char },
    #[error("the feature's name looks like a path; give a title such as \"payment processing\"")]
    Path,
    #[error(
        "`{text}` is not a feature's slug: small letters, digits and `-`, at most {MAX_SLUG_BYTES}, not starting with `-`"
    )]
    NotASlug { text: String },
}

impl Feature {
    /// `"Payment processing!"` becomes `payment-processing`.
    pub fn from_title(title: &str) -> Result<Feature, NameError> {
        let title = title.trim_matches(' ');
        if title.is_empty() {
            return Err(NameError::Empty);
        }
        if title.len() > MAX_TITLE_BYTES {
            return Err(NameError::TooLong { bytes: title.len() });
        }
        if let Some(character) = title.chars().find(|c| is_invisible(*c)) {
            return Err(NameError::Invisible { character });
        }
        if looks_like_path(title) {
            return Err(NameError::Path);
        }
        let slug = slug_of(title, MAX_SLUG_BYTES);
        if slug.is_empty() {
            return Err(NameError::NothingLeft);
        }
        Ok(Feature { title: title.to_owned(), slug })
    }

    /// A name that is already a slug, such as one read from a file name.
    pub fn parse_slug(text: &str) -> Result<Feature, NameError> {
        let starts_well = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        let rest_is_well = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if starts_well && rest_is_well && text.len() <= MAX_SLUG_BYTES {
            Ok(Feature { title: text.to_owned(), slug: text.to_owned() })
        } else {
            Err(NameError::NotASlug { text: text.escape_debug().take(MAX_TITLE_BYTES).collect() })
        }
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    pub fn slug(&self) -> &str {
        &self.slug
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.slug)
    }
}

/// Characters that change what a reader sees without being seen: controls, bidi marks, zero widths, fillers, tags.
/// Not those that only choose between the text and the emoji form of the character before them.
pub fn is_invisible(c: char) -> bool {
    let of_form = matches!(c, '\u{FE0E}' | '\u{FE0F}');
    let other = matches!(c, '\u{2028}'..='\u{2029}' | '\u{2800}' | '\u{FFF9}'..='\u{FFFB}');
    c.is_control() || other || (is_ignorable(c) && !of_form)
}

/// Default-ignorable characters: nothing is drawn for them, and some file systems skip them in names.
pub fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{FFF0}'..='\u{FFF8}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}')
}

/// A title may have a slash (`client/server sync`), but not the shape of a path.
fn looks_like_path(title: &str) -> bool {
    title.starts_with(['/', '~'])
        || title.contains('\\')
        || title.split('/').any(|part| matches!(part.trim(), "." | ".."))
}

/// What is left of a title in `[a-z0-9-]`, at most so many bytes of it; maybe nothing.
pub fn slug_of(title: &str, most: usize) -> String {
    let mut slug = String::with_capacity(title.len().min(most));
    for c in title.chars() {
        if slug.len() == most {
            break;
        }
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slug(title: &str) -> Result<String, NameError> {
        Feature::from_title(title).map(|f| f.slug)
    }

    // covers: R17, RELIABILITY 41
    #[test]
    fn every_title_gives_a_safe_slug_or_a_clear_error() {
        let safe = [
            ("payment processing", "payment-processing"),
            ("  Payment   Processing!  ", "payment-processing"),
            ("client/server sync", "client-server-sync"),
            ("CON", "con"),
            ("aux.txt", "aux-txt"),
            ("trailing dot.", "trailing-dot"),
            ("-rf", "rf"),
            ("--help", "help"),
            ("%2e%2e%2fetc", "2e-2e-2fetc"),
            ("caf\u{e9}", "caf"),
            ("cafe\u{301}", "cafe"),
            ("p\u{430}yment", "p-yment"),
            ("Case", "case"),
            ("case", "case"),
            ("a..b", "a-b"),
            ("$(rm -rf x)", "rm-rf-x"),
        ];
        for (title, expected) in safe {
            assert_eq!(slug(title).as_deref(), Ok(expected), "{title:?}");
            let again = Feature::parse_slug(expected).unwrap();
            assert_eq!(again.slug(), expected);
        }
    }

    // covers: R17, RELIABILITY 41
    #[test]
    fn hostile_titles_are_refused() {
        let refused = [
            ("", NameError::Empty),
            ("   ", NameError::Empty),
            ("!!!", NameError::NothingLeft),
            ("\u{44d}\u{442}\u{43e}", NameError::NothingLeft),
            ("../../x", NameError::Path),
            ("..", NameError::Path),
            (".", NameError::Path),
            ("/etc/x", NameError::Path),
            ("a/../b", NameError::Path),
            ("~/x", NameError::Path),
            ("..\\x", NameError::Path),
            ("C:\\x", NameError::Path),
            ("a\nb", NameError::Invisible { character: '\n' }),
            ("a\0b", NameError::Invisible { character: '\0' }),
            ("a\u{202E}b", NameError::Invisible { character: '\u{202E}' }),
            ("a\u{200B}b", NameError::Invisible { character: '\u{200B}' }),
            ("a\u{1b}[31mb", NameError::Invisible { character: '\u{1b}' }),
        ];
        for (title, expected) in refused {
            assert_eq!(slug(title), Err(expected), "{title:?}");
        }
        assert_eq!(slug(&"x".repeat(256)), Err(NameError::TooLong { bytes: 256 }));
    }

    #[test]
    fn long_titles_are_cut_without_a_dash_at_the_end() {
        assert_eq!(slug(&"x".repeat(255)).unwrap().len(), MAX_SLUG_BYTES);
        let title = format!("{} {}", "x".repeat(99), "y".repeat(50));
        assert_eq!(slug(&title).unwrap(), "x".repeat(99));
    }

    #[test]
    fn only_slugs_are_parsed_as_slugs() {
        for bad in ["", "-a", "A", "a b", "a/b", "..", "a\n", "\u{e9}", &"a".repeat(101)] {
            assert!(Feature::parse_slug(bad).is_err(), "{bad:?}");
        }
        let error = Feature::parse_slug("a\u{1b}[2J").unwrap_err().to_string();
        assert!(!error.contains('\u{1b}'), "{error}");
    }
}

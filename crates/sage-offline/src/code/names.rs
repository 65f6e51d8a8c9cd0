//! How names are written.

/// A way to write a name of several words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Style {
    Snake,
    Camel,
    Pascal,
    Screaming,
    Kebab,
    /// One word in small letters: it fits snake, camel and kebab.
    Word,
    Mixed,
}

impl Style {
    pub fn of(name: &str) -> Style {
        let name = name.trim_matches('_');
        let (upper, lower) = (name.contains(char::is_uppercase), name.contains(char::is_lowercase));
        let (under, dash) = (name.contains('_'), name.contains('-'));
        let first_upper = name.starts_with(char::is_uppercase);
        match (upper, lower, under, dash) {
            (_, _, true, true) => Style::Mixed,
            (false, _, true, _) => Style::Snake,
            (false, _, _, true) => Style::Kebab,
            (false, _, _, _) => Style::Word,
            (true, false, _, false) => Style::Screaming,
            (true, true, true, _) | (true, _, _, true) => Style::Mixed,
            (true, true, false, false) if first_upper => Style::Pascal,
            (true, true, false, false) => Style::Camel,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Style::Snake => "snake_case",
            Style::Camel => "camelCase",
            Style::Pascal => "PascalCase",
            Style::Screaming => "SCREAMING_SNAKE_CASE",
            Style::Kebab => "kebab-case",
            Style::Word => "one lowercase word",
            Style::Mixed => "mixed",
        }
    }

    /// Whether a name in this style is no exception where `other` is the rule.
    pub fn fits(self, other: Style) -> bool {
        self == other
            || (self == Style::Word && matches!(other, Style::Snake | Style::Camel | Style::Kebab))
            // `URL` and `T` are Pascal names of one word.
            || (self == Style::Screaming && other == Style::Pascal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_told_apart() {
        let of = |name: &str| Style::of(name).name();
        assert_eq!(of("read_all"), "snake_case");
        assert_eq!(of("_read"), "one lowercase word");
        assert_eq!(of("readAll"), "camelCase");
        assert_eq!(of("ReadAll"), "PascalCase");
        assert_eq!(of("MAX_SIZE"), "SCREAMING_SNAKE_CASE");
        assert_eq!(of("user-card"), "kebab-case");
        assert_eq!(of("Read_all"), "mixed");
    }
}

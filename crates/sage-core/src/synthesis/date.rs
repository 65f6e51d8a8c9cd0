//! Dates in the forms that leave no doubt: `2026-03-05`, `2026/3/5`, `March 5, 2026`, `5th of Mar 2026`.

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// `2026-03-05`, with the time of day if there is one other than midnight.
pub fn parse(text: &str) -> Option<String> {
    let text = text.trim();
    let timed = text.split_once(['T', 't']).and_then(|(date, time)| Some((numeric(date)?, time)));
    let ((year, month, day), time) = match timed {
        Some(timed) => timed,
        None => (numeric(text).or_else(|| spelled(text))?, ""),
    };
    let real = (1..=12).contains(&month) && (1..=31).contains(&day) && (1000..=9999).contains(&year);
    let time = time.trim_end_matches(['Z', 'z']).to_lowercase();
    let midnight = time.chars().all(|c| matches!(c, '0' | ':' | '.'));
    real.then(|| {
        format!("{year}-{month:02}-{day:02}{}", if midnight { String::new() } else { format!("t{time}") })
    })
}

fn numeric(text: &str) -> Option<(u32, u32, u32)> {
    let parts: Vec<&str> = text.split(['-', '/']).collect();
    let [year, month, day] = parts.as_slice() else { return None };
    // 03/04/2026 means two days, depending on who reads it.
    (year.len() == 4).then_some((year.parse().ok()?, month.parse().ok()?, day.parse().ok()?))
}

fn spelled(text: &str) -> Option<(u32, u32, u32)> {
    let lower = text.to_lowercase();
    let words = lower.split([' ', ',', '.']).filter(|word| !word.is_empty() && *word != "of");
    let (mut year, mut month, mut day) = (None, None, None);
    for word in words {
        let bare = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let slot = match bare.len() {
            0 => &mut month,
            4 => &mut year,
            1 | 2 => &mut day,
            _ => return None,
        };
        let value = if bare.is_empty() { named(word)? } else { ordinal(word, bare)? };
        if slot.replace(value).is_some() {
            return None;
        }
    }
    Some((year?, month?, day?))
}

fn named(word: &str) -> Option<u32> {
    let position = MONTHS.iter().position(|month| word.len() >= 3 && month.starts_with(word))?;
    Some(position as u32 + 1)
}

fn ordinal(word: &str, digits: &str) -> Option<u32> {
    ["", "st", "nd", "rd", "th"].contains(&&word[digits.len()..]).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    // covers: S5
    #[test]
    fn dates_without_a_doubt_are_dates() {
        for text in [
            "2026-03-05",
            "2026/3/5",
            "March 5, 2026",
            "5 Mar. 2026",
            "5th of march 2026",
            "2026-03-05T00:00:00Z",
        ] {
            assert_eq!(super::parse(text).as_deref(), Some("2026-03-05"), "{text}");
        }
        assert_eq!(super::parse("2026-03-05T10:30Z").as_deref(), Some("2026-03-05t10:30"));
        for text in ["03/04/2026", "2026", "March 2026", "2026-13-05", "may", "12 files 2026", "1-2", "", "t"]
        {
            assert_eq!(super::parse(text), None, "{text}");
        }
    }
}

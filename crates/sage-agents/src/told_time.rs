//! When an agent's own words say that it can be asked again.
//!
//! | words                                                     | from                                |
//! |-----------------------------------------------------------|-------------------------------------|
//! | `try again in 11.054s`, `reset after 1h2m3s`               | OpenAI, codex, Gemini               |
//! | `try again at 3:05 PM`, `at Nov 19th, 2026 6:37 PM`        | codex, in its local time zone       |
//! | `usage limit reached|1760000000`                           | Claude Code before 2.1, epoch       |

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// The clock on the wall of an agent: its messages name local times.
#[derive(Clone, Debug)]
pub struct Wall {
    pub now_ms: u64,
    zone: TimeZone,
}

impl Wall {
    /// `zone` is the agent's `TZ`; without one it has the system's.
    pub fn now(zone: Option<&str>) -> Wall {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Wall::at(now.as_millis() as u64, zone)
    }

    fn at(now_ms: u64, zone: Option<&str>) -> Wall {
        let named = zone.map(|zone| zone.trim_start_matches(':'));
        let named = named.and_then(|zone| TimeZone::get(zone).or_else(|_| TimeZone::posix(zone)).ok());
        Wall { now_ms, zone: named.unwrap_or_else(TimeZone::system) }
    }

    fn today(&self) -> Option<Date> {
        let now = Timestamp::from_millisecond(i64::try_from(self.now_ms).ok()?).ok()?;
        Some(now.to_zoned(self.zone.clone()).date())
    }

    fn ms(&self, time: DateTime) -> Option<u64> {
        u64::try_from(time.to_zoned(self.zone.clone()).ok()?.timestamp().as_millisecond()).ok()
    }
}

const PAUSES: &[&str] =
    &["again in ", "retry in ", "retry after ", "reset after ", "reset in ", "resets in "];

/// How long to wait: `again in 250ms`, `again in 2 days 3 hours 5 minutes`.
pub fn pause_ms(text: &str) -> Option<u64> {
    let lower = text.to_lowercase();
    let mut rest = PAUSES.iter().find_map(|word| lower.split_once(word))?.1.trim_start();
    let mut total_ms = 0.0;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else { break };
        let after = rest[digits..].trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let unit_ms = match &after[..letters] {
            "ms" => 1.0,
            unit if unit.starts_with('s') => 1e3,
            unit if unit.starts_with('m') => 6e4,
            unit if unit.starts_with('h') => 3.6e6,
            unit if unit.starts_with('d') => 8.64e7,
            _ => break,
        };
        total_ms += number * unit_ms;
        rest = after[letters..].trim_start_matches([',', ' ']);
    }
    // Whole milliseconds of at most a few years: nothing is lost.
    (total_ms > 0.0 && total_ms < 1e12).then(|| total_ms.ceil() as u64)
}

/// When a used-up limit is full again, in ms since the epoch.
pub fn reset_at_ms(text: &str, wall: &Wall) -> Option<u64> {
    epoch_ms(text).or_else(|| named_ms(text, wall))
}

/// `Claude AI usage limit reached|1760000000`: seconds since the epoch.
pub fn epoch_ms(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("limit reached|")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse::<u64>().ok()?.checked_mul(1_000)
}

/// `try again at Nov 19th, 2026 6:37 PM`, `try again at 3:05 PM`. The minute is named and not the second, so it is
/// over at the end of it.
fn named_ms(text: &str, wall: &Wall) -> Option<u64> {
    const MINUTE_MS: u64 = 60_000;
    let lower = text.to_lowercase();
    let rest = lower.split_once("try again at ")?.1;
    let words: Vec<&str> = rest.split([' ', ',']).filter(|word| !word.is_empty()).take(5).collect();
    let (date, time) = match words.as_slice() {
        [month, day, year, time, half, ..] if month.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            (date(month, day, year)?, (*time, *half))
        }
        [time, half, ..] => (wall.today()?, (*time, *half)),
        _ => return None,
    };
    let (hour, minute) = of_day(time.0, time.1)?;
    wall.ms(date.at(hour, minute, 0, 0))?.checked_add(MINUTE_MS)
}

/// `nov`, `19th`, `2026`
fn date(month: &str, day: &str, year: &str) -> Option<Date> {
    let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let month = months.iter().position(|name| month.starts_with(name))? + 1;
    let day = day.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()?;
    Date::new(year.parse().ok()?, i8::try_from(month).ok()?, day).ok()
}

/// `6:37`, `pm.`
fn of_day(time: &str, half: &str) -> Option<(i8, i8)> {
    let (hour, minute) = time.split_once(':')?;
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let afternoon = match half.get(..2)? {
        "am" => 0,
        "pm" => 12,
        _ => return None,
    };
    ((1..=12).contains(&hour) && (0..60).contains(&minute)).then_some((hour % 12 + afternoon, minute))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> u64 {
        let time = humantime::parse_rfc3339(time).unwrap();
        time.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
    }

    // covers: R7
    #[test]
    fn pauses_are_read_in_every_unit() {
        assert_eq!(pause_ms("Please try again in 11.054s. Visit x"), Some(11_054));
        assert_eq!(pause_ms("try again in 250ms."), Some(250));
        assert_eq!(pause_ms("Try again in 2 days 3 hours 5 minutes."), Some(183_900_000));
        assert_eq!(pause_ms("Your quota will reset after 1h2m3s."), Some(3_723_000));
        assert_eq!(pause_ms("please retry in 7.5s."), Some(7_500));
        for text in ["try again in a while", "try again at 3:05 PM", "again in 0s", ""] {
            assert_eq!(pause_ms(text), None, "{text}");
        }
    }

    // covers: R7
    #[test]
    fn a_named_time_is_local_and_lasts_to_the_end_of_its_minute() {
        let told = |text: &str, zone| reset_at_ms(text, &Wall::at(at("2026-11-18T10:20:00Z"), Some(zone)));
        let dated = "You’ve hit your usage limit. Upgrade to Pro or try again at Nov 19th, 2026 6:37 PM.";
        assert_eq!(told(dated, "UTC"), Some(at("2026-11-19T18:38:00Z")));
        assert_eq!(told(dated, "EST5"), Some(at("2026-11-19T23:38:00Z")));
        assert_eq!(told("try again at 12:05 PM.", "UTC"), Some(at("2026-11-18T12:06:00Z")));
        assert_eq!(told("Try again at 12:00 AM", "EST5"), Some(at("2026-11-18T05:01:00Z")));
        for text in ["try again at 13:05 PM", "try again at noon", "try again at Nov 39th, 2026 6:37 PM", "x"]
        {
            assert_eq!(told(text, "UTC"), None, "{text}");
        }
    }

    // covers: R7
    #[test]
    fn seconds_since_the_epoch_are_read() {
        assert_eq!(epoch_ms("Claude AI usage limit reached|1760000000"), Some(1_760_000_000_000));
        assert_eq!(epoch_ms("limit reached|"), None);
        assert_eq!(epoch_ms("limit reached|99999999999999999999"), None);
    }
}

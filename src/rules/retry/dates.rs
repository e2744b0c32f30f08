//! Dates as servers write them, in milliseconds since 1970.

use super::delay::position;
use crate::data::text::{find_any, parse_u64, replace, split, split_once, split_while};

/// Parses a date into milliseconds since 1970: RFC 2822 as in HTTP (`Fri, 02 Jan 2026 03:04:10 GMT`, also
/// with an offset, with an American zone name, or without the weekday). A date with the wrong weekday is
/// invalid.
pub fn parse_date(text: &str) -> Option<i64> {
    let text = text.trim();
    let (weekday, mut rest) = match split_once(text, ",") {
        Some((name, rest)) => (Some(position(WEEKDAYS, name.trim())?), rest),
        None => (None, text),
    };
    let day = digits(next_word(&mut rest)?, 1, 2)?;
    let month = position(MONTHS, next_word(&mut rest)?)? + 1;
    let year = full_year(next_word(&mut rest)?)?;
    let (hour, minute, second) = time_of_day(next_word(&mut rest)?)?;
    let offset = zone_minutes(next_word(&mut rest)?)?;
    let is_over = next_word(&mut rest).is_none_or(|comment| comment.starts_with("("));
    let days = days_since_1970(year, month, day)?;
    // 1 January 1970 was a Thursday.
    if !is_over || weekday.is_some_and(|weekday| (days + 3).rem_euclid(7) != weekday) {
        return None;
    }
    let minutes = (days * 24 + hour) * 60 + minute - offset;
    Some((minutes * 60 + second) * 1_000)
}

/// Returns the next word of a text.
fn next_word<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let (word, after) = split_while(rest.trim_ascii_start(), |byte| !byte.is_ascii_whitespace());
    *rest = after;
    if word.is_empty() { None } else { Some(word) }
}

/// Parses a date into milliseconds since 1970: RFC 3339, `2026-01-02T03:04:05.5Z`.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    let (date, time) = text.split_at_checked(find_any(text, "Tt")?)?;
    let mut parts = split(date, "-");
    let year = digits(parts.next()?, 4, 4)?;
    let month = digits(parts.next()?, 2, 2)?;
    let day = digits(parts.next()?, 2, 2)?;
    let time = time.get(1..)?;
    let (clock, zone) = time.split_at_checked(find_any(time, "Zz+-")?)?;
    let (clock, fraction) = split_once(clock, ".").unwrap_or((clock, "0"));
    let (hour, minute, second) = time_of_day(clock)?;
    // Three digits are milliseconds; missing digits are zeros.
    let thousandths = [fraction, "00"].concat();
    let thousandths = digits(thousandths.get(..3)?, 3, 3)?;
    let offset = if zone.eq_ignore_ascii_case("z") { 0 } else { offset_minutes(&replace(zone, ":", ""))? };
    if parts.next().is_some() {
        return None;
    }
    let minutes = (days_since_1970(year, month, day)? * 24 + hour) * 60 + minute - offset;
    Some((minutes * 60 + second) * 1_000 + thousandths)
}

const WEEKDAYS: &str = "Mon Tue Wed Thu Fri Sat Sun";

const MONTHS: &str = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec";

/// The zone names of RFC 2822, two for each hour west of Greenwich, with some hours empty. Single letters
/// except `J` count as Greenwich.
const ZONES: &str = "GMT UT        EDT EST CDT CST MDT MST PDT PST";

/// Parses `03:04:05` or `03:04`.
fn time_of_day(text: &str) -> Option<(i64, i64, i64)> {
    let mut parts = split(text, ":");
    let hour = digits(parts.next()?, 2, 2)?;
    let minute = digits(parts.next()?, 2, 2)?;
    let second = parts.next().map_or(Some(0), |second| digits(second, 2, 2))?;
    let fits = hour < 24 && minute < 60 && second <= 60 && parts.next().is_none();
    if fits { Some((hour, minute, second)) } else { None }
}

/// Returns the offset in minutes east of Greenwich.
fn zone_minutes(text: &str) -> Option<i64> {
    if let Some(at) = position(ZONES, text) {
        return Some(at / 2 * -60);
    }
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some('j' | 'J'), None) => None,
        (Some(letter), None) if letter.is_ascii_alphabetic() => Some(0),
        _ => offset_minutes(text),
    }
}

/// Parses `+0200`.
fn offset_minutes(text: &str) -> Option<i64> {
    let (sign, rest) = match text.strip_prefix("+") {
        Some(rest) => (1, rest),
        None => (-1, text.strip_prefix("-")?),
    };
    let number = digits(rest, 4, 4)?;
    let (hours, minutes) = (number / 100, number % 100);
    if minutes < 60 { Some(sign * (hours * 60 + minutes)) } else { None }
}

/// Returns the full year, as in RFC 2822: two digits mean 1950 to 2049, three digits count from 1900.
fn full_year(text: &str) -> Option<i64> {
    let year = digits(text, 2, 9)?;
    Some(match text.len() {
        2 if year < 50 => year + 2_000,
        2 | 3 => year + 1_900,
        _ => year,
    })
}

fn digits(text: &str, min: usize, max: usize) -> Option<i64> {
    if !(min..=max).contains(&text.len()) {
        return None;
    }
    i64::try_from(parse_u64(text)?).ok()
}

/// Returns the days since 1 January 1970, or `None` for a day that does not exist.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // Years start in March here, so that the leap day comes last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zones_of_america_are_so_many_hours_from_greenwich() {
        for (zone, hours) in
            [("GMT", 0), ("UT", 0), ("EDT", 4), ("EST", 5), ("CDT", 5), ("CST", 6), ("MDT", 6)]
                .into_iter()
                .chain([("MST", 7), ("PDT", 7), ("PST", 8), ("z", 0)])
        {
            let at = parse_date(&format!("01 Jan 1970 00:00:00 {zone}"));
            assert_eq!(at, Some(hours * 3_600_000), "{zone}");
        }
        assert_eq!(parse_date("01 Jan 1970 00:00:00 ABC"), None);
    }

    #[test]
    fn dates_are_counted_right_over_leap_years_and_centuries() {
        let day = 86_400_000;
        assert_eq!(parse_date("1 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(parse_date("Thu, 01 Jan 1970 00:00 +0000"), Some(0));
        assert_eq!(parse_date("31 Dec 1969 00:00:00 GMT"), Some(-day));
        assert_eq!(parse_date("1 Mar 2000 00:00:00 GMT"), Some(11_017 * day));
        assert_eq!(parse_date("29 Feb 2024 00:00:00 GMT"), Some(19_782 * day));
        assert_eq!(parse_date("29 Feb 2023 00:00:00 GMT"), None);
        assert_eq!(parse_date("29 Feb 2100 00:00:00 GMT"), None);
        assert_eq!(parse_date("1 Jan 70 00:00:00 GMT"), Some(0));
        assert_eq!(parse_rfc3339("1970-01-01T01:00:00.5+01:00"), Some(500));
        assert_eq!(parse_rfc3339("1970-01-01T00:00:00.123456Z"), Some(123));
    }
}

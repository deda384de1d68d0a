//! Times, sizes and foreign texts, for people.

use jiff::Timestamp;
use unicode_width::UnicodeWidthChar;

/// Returns how many columns a text takes at a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Returns a foreign text on one line, without anything that would move the cursor,
/// change colours or reverse the direction of writing.
pub(crate) fn on_one_line(text: &str) -> String {
    let is_turning = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let plain = |line: &str| -> String {
        let shown = line.chars().filter(|c| !is_turning(*c));
        shown.map(|c| if c.is_control() { ' ' } else { c }).collect()
    };
    let lines: Vec<String> = text.trim().lines().map(plain).collect();
    lines.join(" ↵ ")
}

/// Returns the beginning of a text that fits, with a sign where something is missing.
pub(crate) fn cut(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut left = room.saturating_sub(1);
    let fits = |c: &char| {
        let width = c.width().unwrap_or(0);
        let is_room = width <= left;
        left = left.saturating_sub(width);
        is_room
    };
    let head: String = text.chars().take_while(fits).collect();
    if room == 0 { String::new() } else { format!("{head}…") }
}

/// Returns how long ago that was.
pub(crate) fn age(then: &str, now: Timestamp) -> String {
    let Ok(then) = then.parse::<Timestamp>() else { return "-".to_owned() };
    let seconds = (now.as_millisecond() - then.as_millisecond()) / 1000;
    match seconds {
        ..0 => then.strftime("%F").to_string(),
        0..60 => format!("{seconds}s ago"),
        60..3600 => format!("{}m ago", seconds / 60),
        3600..86_400 => format!("{}h ago", seconds / 3600),
        86_400..2_592_000 => format!("{}d ago", seconds / 86_400),
        _ => then.strftime("%F").to_string(),
    }
}

pub(crate) fn took(microseconds: u64) -> String {
    let seconds = microseconds / 1_000_000;
    match seconds {
        0 if microseconds < 1000 => "<1 ms".to_owned(),
        0 => format!("{} ms", microseconds / 1000),
        1..60 => format!("{seconds}.{} s", microseconds / 100_000 % 10),
        60..3600 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} m", seconds / 3600, seconds / 60 % 60),
    }
}

/// Returns `1 run`, `2 runs`.
pub(crate) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_stay_on_their_line() {
        assert_eq!(on_one_line("a\tb\x1b[31m\rc\u{9b}d\n\u{202e}e\n"), "a b [31m c d ↵ e");
        assert_eq!(on_one_line(""), "");
    }

    #[test]
    fn a_text_is_cut_by_columns_and_not_in_the_middle_of_a_wide_character() {
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("e\u{301}clair", 7), "e\u{301}clair");
        assert_eq!(cut("abc", 2), "a…");
        assert_eq!(cut("abc", 1), "…");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn ages_and_durations_are_rounded_down() {
        let now = "2026-03-01T12:00:00Z".parse().unwrap();
        let ages = ["2026-03-01T11:59:59.9Z", "2026-03-01T11:01:01Z", "2026-02-28T13:00:00Z"];
        assert_eq!(ages.map(|then| age(then, now)), ["0s ago", "58m ago", "23h ago"]);
        let far = ["2026-02-20T12:00:00Z", "2025-01-01T00:00:00Z", "2026-03-02T00:00:00Z", "x"];
        assert_eq!(far.map(|then| age(then, now)), ["9d ago", "2025-01-01", "2026-03-02", "-"]);
        let times = [999, 12_345, 1_950_000, 61_000_000, 7_260_000_000];
        assert_eq!(times.map(took), ["<1 ms", "12 ms", "1.9 s", "1 m 01 s", "2 h 01 m"]);
    }
}

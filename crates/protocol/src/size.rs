//! Durations and sizes as people write them: `500ms`, `30s`, `64KiB`.

use std::time::Duration;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ParseQuantityError {
    #[error("{0:?} is not a time; write for instance 500ms, 30s, 5m, 2h, 1d")]
    Duration(String),
    #[error("{0:?} is not a size; write for instance 4096, 64KiB, 8MiB, 1GiB")]
    Size(String),
}

/// Parses a time: a number and `ms`, `s`, `m`, `h` or `d`; a bare number is seconds.
///
/// # Errors
/// When the text is none of these.
pub fn parse_duration(text: &str) -> Result<Duration, ParseQuantityError> {
    let seconds = parse_seconds(text)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| ParseQuantityError::Duration(text.to_owned()))
}

/// Parses a time into seconds, without an upper limit.
///
/// # Errors
/// When the text is none of these.
pub fn parse_seconds(text: &str) -> Result<f64, ParseQuantityError> {
    let wrong = || ParseQuantityError::Duration(text.to_owned());
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "" | "s" | "sec" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        "d" => number * 86400.0,
        _ => return Err(wrong()),
    };
    // Times are counted in milliseconds, and zero often means no limit.
    Ok(if seconds > 0.0 { seconds.max(0.001) } else { seconds })
}

/// Parses a size in bytes: a number and an optional unit; `K`, `KB` and `KiB` all mean 1024.
///
/// # Errors
/// When the text is not a size, or beyond 2^53.
pub fn parse_size(text: &str) -> Result<u64, ParseQuantityError> {
    let bytes = parse_bytes(text)?;
    // Beyond 2^53 an f64 is no longer exact, and no disk is that large.
    if bytes < 9.0e15 { Ok(bytes as u64) } else { Err(ParseQuantityError::Size(text.to_owned())) }
}

/// Parses a size in bytes, without an upper limit.
///
/// # Errors
/// When the text is not a size.
pub fn parse_bytes(text: &str) -> Result<f64, ParseQuantityError> {
    let wrong = || ParseQuantityError::Size(text.to_owned());
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let unit = unit.to_ascii_lowercase();
    let shift = match unit.as_str() {
        "" | "b" => 0,
        "k" | "kb" | "ki" | "kib" => 10,
        "m" | "mb" | "mi" | "mib" => 20,
        "g" | "gb" | "gi" | "gib" => 30,
        "t" | "tb" | "ti" | "tib" => 40,
        _ => return Err(wrong()),
    };
    Ok(number * f64::from(2_u32).powi(shift))
}

/// Returns the shortest exact text, in the largest unit that divides the duration.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let ms = duration.as_millis();
    for (unit, size) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)] {
        if ms != 0 && ms.is_multiple_of(size) {
            return format!("{}{unit}", ms / size);
        }
    }
    format!("{ms}ms")
}

fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let ms = |t: &str| parse_duration(t).map(|d| d.as_millis());
        assert_eq!(ms("500ms"), Ok(500));
        assert_eq!(ms("30s"), Ok(30_000));
        assert_eq!(ms("1.5m"), Ok(90_000));
        assert_eq!(ms("2"), Ok(2000));
        assert_eq!(ms("0"), Ok(0));
        assert_eq!(ms("0.1ms"), Ok(1));
        for bad in ["", "s", "-1s", "5 parsecs", "1e9", "..", "99999999999999999999d"] {
            assert!(parse_duration(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        assert_eq!(parse_size("64KiB"), Ok(65536));
        assert_eq!(parse_size("8MiB"), Ok(8 << 20));
        assert_eq!(parse_size("1g"), Ok(1 << 30));
        assert_eq!(parse_size("12"), Ok(12));
        for bad in ["", "KiB", "-1", "1XB", "1kiib", "1i", "1e3", "9999999999TiB"] {
            assert!(parse_size(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_duration_is_written_in_its_largest_unit() {
        for text in ["500ms", "30s", "5m", "2h", "1d", "90s", "0ms"] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), text);
        }
    }
}

//! Decides by its name whether a value is a secret.

/// Words that make a name secret, anywhere in it.
const WORDS: [&str; 9] = [
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SECRET",
    "CREDENTIAL",
    "APIKEY",
    "ACCESSKEY",
    "PRIVATEKEY",
    "AUTHTOKEN",
];

/// Words that make a name secret as the last of several words.
const LAST: [&str; 8] = ["TOKEN", "KEY", "PASS", "PWD", "AUTH", "COOKIE", "SIGNATURE", "PAT"];

/// Endings that also count within a word: `DBPWD`, `mypass`.
const ENDINGS: [&str; 3] = ["PASS", "PWD", "PASSWD"];

/// Words with such an ending that mean something else.
const OTHERS: [&str; 9] = [
    "PWD",
    "OLDPWD",
    "BYPASS",
    "COMPASS",
    "ENCOMPASS",
    "OVERPASS",
    "SURPASS",
    "TRESPASS",
    "UNDERPASS",
];

/// How certain a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Secret,
    /// In code, names like `sort_key` stand for anything.
    Perhaps,
    Plain,
}

/// Whether a value that is written after this name in a text is a secret.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    let value = bare(value);
    let is_reference = value.starts_with(['$', '<', '[', '{', '(']);
    !is_reference && is_secret_value(name, value)
}

/// Whether a variable's value is a secret, in the interpreter's notation: arrays, tuples
/// and `$'…'` are values.
pub(super) fn is_secret_variable(name: &str, value: &str) -> bool {
    let is_object = value.starts_with('<');
    let is_composite = value.starts_with(['[', '{', '(']);
    let value = value.strip_prefix('$').filter(|rest| rest.starts_with('\'')).unwrap_or(value);
    if is_composite {
        return value.len() > 2 && of_name(name) == Name::Secret;
    }
    !is_object && !value.starts_with('$') && is_secret_value(name, bare(value))
}

fn bare(value: &str) -> &str {
    value.trim_matches(['"', '\'', '\\'])
}

fn is_secret_value(name: &str, value: &str) -> bool {
    let is_harmless = value.len() < 4
        || matches!(value.to_ascii_lowercase().as_str(), "true" | "false" | "none" | "null")
        || (value.len() < 8 && value.bytes().all(|b| b.is_ascii_digit()))
        || value.starts_with('/');
    if is_harmless {
        return false;
    }
    match of_name(name) {
        Name::Secret => true,
        Name::Perhaps => is_random(value),
        Name::Plain => false,
    }
}

fn of_name(name: &str) -> Name {
    let words = words(name);
    let joined = words.concat();
    let Some(last) = words.last() else { return Name::Plain };
    let is_written_together = || ENDINGS.iter().any(|end| last.ends_with(end) && last != end);
    if OTHERS.contains(&last.as_str()) && words.len() == 1 {
        return Name::Plain;
    }
    if WORDS.iter().any(|word| joined.contains(word))
        || (is_written_together() && !OTHERS.contains(&last.as_str()))
    {
        return Name::Secret;
    }
    if words.len() == 1 {
        return if last == "TOKEN" { Name::Secret } else { Name::Plain };
    }
    if !LAST.contains(&last.as_str()) {
        return Name::Plain;
    }
    let is_constant = !name.bytes().any(|b| b.is_ascii_lowercase());
    if is_constant || last == "TOKEN" { Name::Secret } else { Name::Perhaps }
}

/// Splits a name into words, however they are joined.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let is_joint = !c.is_alphanumeric();
        if is_joint || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase();
        if !is_joint && let Some(word) = words.last_mut() {
            word.extend(c.to_uppercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_random(value: &str) -> bool {
    value.len() >= 16
        && !value.contains(char::is_whitespace)
        && value.bytes().any(|b| b.is_ascii_digit())
        && value.bytes().any(|b| b.is_ascii_alphabetic())
}

//! Secrets in options of programs: `--password …`, and short options of well-known programs.

use super::{MASK, names, replaced};
use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// A word of a command, quoted or not, that is not masked yet.
const WORD: &str = r#"("[^"\n\[][^"\n]*"|'[^'\n\[][^'\n]*'|[^\s"'|;&\[][^\s"'|;&]*)"#;

/// `--name value`; `--name=value` is handled as an assignment.
static LONG: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!(r"((?:^|\s)--?([A-Za-z][A-Za-z0-9_-]+)\s+){WORD}")).ok());

/// Last words of options that only lead to a secret, such as a file.
const LEADS: [&str; 7] = ["FILE", "PATH", "DIR", "STDIN", "ENV", "NAME", "PROMPT"];

/// The programs that take a secret with a short option, as the next word or attached to
/// the option.
static SHORT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let programs = [
        // After a space it would be the database.
        (r"mysql[a-z_]*|mariadb[a-z-]*", r"-p"),
        (r"sshpass|mongo[a-z]*|(?:docker|podman|helm|oc|az)\s+(?:registry\s+)?login", r"-p\s*"),
        (r"redis-cli", r"-a\s*"),
        (r"zip|unzip|sqlcmd|bcp", r"-P\s*"),
        (r"ldap[a-z]+", r"-w\s*"),
        (r"7za?|7zz", r"-p"),
        (r"curl|wget|aria2c", r#"(?:-u|-U|--user|--proxy-user)[\s=]*["']?[^\s:"']+:"#),
        (r"https?|xh", r#"(?:-a|--auth)[\s=]*["']?[^\s:"']+:"#),
        (r"smbclient", r#"-U\s*["']?[^\s%"']+%"#),
        (r"openssl", r"-pass(?:in|out)?\s+pass:"),
    ];
    let each =
        programs.map(|(program, option)| format!(r#"(?:\b(?:{program})\b[^\n|;&]*?\s{option})"#));
    Regex::new(&format!("({}){WORD}", each.join("|"))).ok()
});

pub(super) fn mask(text: Cow<'_, str>) -> Cow<'_, str> {
    let text = replaced(&LONG, text, |found| {
        let (before, name, value) = (&found[1], &found[2], &found[3]);
        let is_lead = names::words(name).last().is_some_and(|last| LEADS.contains(&last.as_str()));
        let is_next_option = value.starts_with('-');
        if is_lead || is_next_option || value.contains(MASK) || !names::is_secret(name, value) {
            return found[0].to_owned();
        }
        format!("{before}{}", masked(value))
    });
    // A command may have several.
    let mut text = text;
    for _ in 0..3 {
        text = replaced(&SHORT, text, |found| {
            let (before, value) = (&found[1], &found[2]);
            if value.contains(MASK) || !names::is_secret("password", value) {
                return found[0].to_owned();
            }
            format!("{before}{}", masked(value))
        });
    }
    text
}

/// Returns the mask in the quotes of the value.
pub(super) fn masked(value: &str) -> String {
    let quote = ["\\\"", "\\'", "\"", "'"]
        .into_iter()
        .find(|quote| {
            value.len() > 2 * quote.len() && value.starts_with(quote) && value.ends_with(quote)
        })
        .unwrap_or_default();
    format!("{quote}{MASK}{quote}")
}

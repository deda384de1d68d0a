//! The example of a README, and a comparison with its output.

use anyhow::{Context, ensure};

/// Commands at a prompt, and their output.
pub(super) struct Console {
    pub(super) script: String,
    shows: Vec<String>,
}

impl Console {
    /// Returns the first one of a page.
    pub(super) fn of(page: &str) -> anyhow::Result<Self> {
        let text = block(page, "console").context("the README has no example")?;
        let commands = text.lines().filter_map(|line| line.strip_prefix("$ "));
        let script = format!("set -eu\n{}\n", commands.collect::<Vec<_>>().join("\n"));
        let shows = text.lines().filter(|line| !line.starts_with("$ ")).map(str::to_owned);
        Ok(Self { script, shows: shows.collect() })
    }

    /// Compares the output. `…` matches anything, and so does each number: times differ.
    pub(super) fn expect(&self, said: &str, project: &str) -> anyhow::Result<()> {
        let said = said.replace(project, "/home/me/project");
        let lines: Vec<&str> = said.lines().collect();
        let is_like = lines.len() == self.shows.len()
            && lines.iter().zip(&self.shows).all(|(line, shown)| matches(line, shown));
        ensure!(is_like, "the README's example says\n{said}and not\n{}", self.shows.join("\n"));
        Ok(())
    }
}

/// Returns the first block of a kind in a page.
pub(super) fn block<'a>(page: &'a str, kind: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("```{kind}\n"))?;
    Some(rest.split_once("```")?.0)
}

fn matches(line: &str, shown: &str) -> bool {
    let (line, shown) = (without_numbers(line), without_numbers(shown));
    let mut parts = shown.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    let mut last = "";
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        last = part;
    }
    rest.is_empty() || (last.is_empty() && shown.ends_with('…'))
}

fn without_numbers(text: &str) -> String {
    let is_digit = |c: char| c.is_ascii_digit();
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_digit) {
        out.push_str(&rest[..at]);
        out.push('#');
        rest = rest[at..].trim_start_matches(|c| is_digit(c) || c == '.');
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::{Console, matches};

    #[test]
    fn what_differs_each_time_may_differ_and_nothing_else() {
        assert!(matches(
            "{\"id\":\"sess_1f\",\"ms\":0.51,\"ok\":true}",
            "{\"id\":\"sess_…\",\"ms\":0.3,\"ok\":true}"
        ));
        assert!(!matches("{\"ms\":0.51,\"ok\":false}", "{\"ms\":0.3,\"ok\":true}"));
        assert!(matches("begins with this", "begins …"));
        assert!(!matches("42 and more", "42"));
    }

    #[test]
    fn commands_are_one_script_and_the_rest_is_what_they_print() {
        let page = "# Start\n```console\n$ a --b\nsays …\n$ c\n```\n";
        let console = Console::of(page).expect("an example");
        assert_eq!(console.script, "set -eu\na --b\nc\n");
        console.expect("says hello\n", "/tmp").expect("it is like that");
        assert!(console.expect("says hello\nand more\n", "/tmp").is_err());
    }
}

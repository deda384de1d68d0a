//! The names of a text's jobs: their commands, as they were typed.
//!
//! This is not a parser. Quotes, groups and compound commands are followed only as far as
//! needed to see where a command begins; a text that cannot be followed has no names for
//! its jobs.

/// Number of characters that are shown.
const SHOWN: usize = 200;

/// What encloses a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// A compound command with this closing word, which runs in the shell itself.
    Words(&'static str),
    /// `( )`, `$( )`: a process started in there is another shell's job.
    Parentheses,
    /// `${ }`: contains no commands.
    Parameter,
}

struct Level {
    within: Within,
    /// Where the enclosing command begins.
    begin: usize,
}

/// Words that open a compound command, and those that close it.
const COMPOUNDS: [(&str, &str); 7] = [
    ("{", "}"),
    ("if", "fi"),
    ("for", "done"),
    ("while", "done"),
    ("until", "done"),
    ("select", "done"),
    ("case", "esac"),
];

const ENDS_WORD: &[char] =
    &[' ', '\t', '\n', ';', '&', '|', '(', ')', '<', '>', '\'', '"', '\\', '`', '$'];

/// The commands of the jobs that a text starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Names {
    /// Each of them is started exactly once.
    All(Vec<String>),
    /// There may be more or fewer; this is the last one.
    Last(String),
    #[default]
    Unknown,
}

impl Names {
    pub(super) fn is_only_one(&self) -> bool {
        matches!(self, Self::All(names) if names.len() == 1)
    }

    /// Returns the names of the jobs with these pids, of which `last` was started last.
    pub(super) fn of(&self, pids: &[u32], last: u32) -> Vec<Option<String>> {
        match self {
            Self::All(names) if names.len() == pids.len() => {
                names.iter().cloned().map(Some).collect()
            }
            Self::All(_) | Self::Last(_) => {
                let name = |pid: &u32| self.last().filter(|_| *pid == last).map(str::to_owned);
                pids.iter().map(name).collect()
            }
            Self::Unknown => vec![None; pids.len()],
        }
    }

    fn last(&self) -> Option<&str> {
        match self {
            Self::All(names) => names.last().map(String::as_str),
            Self::Last(name) => Some(name),
            Self::Unknown => None,
        }
    }
}

/// Returns the names of the jobs that a text starts, as far as they are clear.
pub(super) fn names(text: &[u8]) -> Names {
    let all = std::str::from_utf8(text).ok().and_then(|text| {
        Reader { text, at: 0, begin: 0, levels: Vec::new(), jobs: Vec::new() }.read()
    });
    let mut all = all.unwrap_or_default();
    let is_plain = all.iter().all(|job| job.is_plain && !job.command.trim().is_empty());
    match all.pop() {
        None => Names::Unknown,
        Some(last) if is_plain => {
            all.push(last);
            Names::All(all.into_iter().map(|job| shown(job.command)).collect())
        }
        Some(last) => match shown(last.command) {
            name if name.is_empty() => Names::Unknown,
            name => Names::Last(name),
        },
    }
}

fn shown(command: &str) -> String {
    let words: Vec<&str> = command.split('\n').map(str::trim).collect();
    words.join(" ").trim().chars().take(SHOWN).collect()
}

struct Job<'a> {
    command: &'a str,
    /// Not in a loop, function or branch.
    is_plain: bool,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// Where the current command begins.
    begin: usize,
    levels: Vec<Level>,
    jobs: Vec<Job<'a>>,
}

impl<'a> Reader<'a> {
    fn read(mut self) -> Option<Vec<Job<'a>>> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'\\' => self.at += 2,
                b'\'' | b'`' => self.skip_to(*byte)?,
                b'"' => self.skip_double()?,
                b'#' if self.is_at_word() => self.skip_comment(),
                b'<' if self.rest().starts_with("<<") && !self.rest().starts_with("<<<") => {
                    return None;
                }
                b'$' if self.rest().starts_with("${") => {
                    self.at += 1;
                    self.open(Within::Parameter);
                }
                b'(' => self.open(Within::Parentheses),
                b')' => self.close_parenthesis(),
                b'}' if self.is_within(Within::Parameter) => self.close(),
                b';' | b'\n' => self.next_command(),
                b'&' => self.operator(),
                _ if self.is_at_word() => self.word(),
                _ => self.at += self.width(),
            }
        }
        self.levels.is_empty().then_some(self.jobs)
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn width(&self) -> usize {
        self.rest().chars().next().map_or(1, char::len_utf8)
    }

    fn is_within(&self, within: Within) -> bool {
        self.levels.last().is_some_and(|level| level.within == within)
    }

    fn is_at_word(&self) -> bool {
        let before = self.at.checked_sub(1).map(|at| self.text.as_bytes()[at]);
        before.is_none_or(|byte| b" \t\n;&|(".contains(&byte))
    }

    fn skip_to(&mut self, quote: u8) -> Option<()> {
        let end = self.text.as_bytes()[self.at + 1..].iter().position(|byte| *byte == quote)?;
        self.at += end + 2;
        Some(())
    }

    fn skip_double(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.text.as_bytes().get(self.at)? {
                b'\\' => self.at += 2,
                b'"' => break,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(())
    }

    fn skip_comment(&mut self) {
        self.at = self.rest().find('\n').map_or(self.text.len(), |end| self.at + end);
    }

    fn open(&mut self, within: Within) {
        self.levels.push(Level { within, begin: self.begin });
        self.at += 1;
        self.begin = self.at;
    }

    fn close(&mut self) {
        if let Some(level) = self.levels.pop() {
            self.begin = level.begin;
        }
        self.at += 1;
    }

    /// In a `case`, a parenthesis may follow a pattern.
    fn close_parenthesis(&mut self) {
        if self.is_within(Within::Parentheses) {
            self.close();
        } else {
            self.next_command();
        }
    }

    fn next_command(&mut self) {
        self.at += 1;
        self.begin = self.at;
    }

    fn operator(&mut self) {
        let bytes = self.text.as_bytes();
        let before = self.at.checked_sub(1).map(|at| bytes[at]);
        let is_part = matches!(before, Some(b'&' | b'<' | b'>' | b'|'))
            || matches!(bytes.get(self.at + 1), Some(b'&' | b'>'));
        if is_part {
            self.at += 1;
            return;
        }
        let ours = |level: &Level| matches!(level.within, Within::Words(_));
        if self.levels.iter().all(ours) {
            let command = &self.text[self.begin..self.at];
            self.jobs.push(Job { command, is_plain: self.levels.is_empty() });
        }
        self.next_command();
    }

    /// Handles a word that opens or closes a compound command, or any other.
    fn word(&mut self) {
        let rest = self.rest();
        let word = &rest[..rest.find(ENDS_WORD).unwrap_or(rest.len())];
        let before = self.text[self.begin..self.at].trim();
        let is_body = before.ends_with("()") || before.starts_with("function ");
        let is_first = before.is_empty() || before.ends_with(['|', '&', '!']) || is_body;
        let opened = COMPOUNDS.iter().find(|(opening, _)| *opening == word);
        if let (Some((_, closing)), true) = (opened, is_first) {
            self.levels.push(Level { within: Within::Words(closing), begin: self.begin });
        } else if is_first && self.is_within(Within::Words(closing_of(word))) {
            self.close();
            self.at -= 1;
        }
        self.at += word.len().max(self.width());
        if is_first && matches!(word, "do" | "then" | "else" | "elif" | "{" | "in") {
            self.begin = self.at;
        }
    }
}

/// Returns the word itself, if it closes something.
fn closing_of(word: &str) -> &'static str {
    COMPOUNDS.iter().map(|(_, closing)| *closing).find(|closing| *closing == word).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_job(text: &[u8]) -> Option<String> {
        names(text).last().map(str::to_owned)
    }

    #[test]
    fn all_jobs_have_names_where_each_is_started_once() {
        let all = |names: &[&str]| Names::All(names.iter().map(|name| (*name).into()).collect());
        let names = |text: &str| names(text.as_bytes());
        assert_eq!(names("a & b 1 & c && d &\nwait"), all(&["a", "b 1", "c && d"]));
        assert_eq!(names("(a; b) & { c; } & d | e &"), all(&["(a; b)", "{ c; }", "d | e"]));
        for text in ["for i in 1 2; do a & done; b &", "if x; then a & fi; b &", "f() { a & }; b &"]
        {
            assert_eq!(names(text), Names::Last("b".into()), "{text}");
        }
        assert!(names("a &").is_only_one() && !names("a & b &").is_only_one());
    }

    #[test]
    fn names_are_given_in_order_or_only_to_the_last() {
        let name = |name: &str| Some(name.to_owned());
        let two = Names::All(vec!["a".into(), "b".into()]);
        assert_eq!(two.of(&[5, 7], 7), [name("a"), name("b")]);
        assert_eq!(two.of(&[7], 7), [name("b")]);
        assert_eq!(two.of(&[5, 6, 7], 7), [None, None, name("b")]);
        assert_eq!(Names::Unknown.of(&[5], 5), [None]);
    }

    #[test]
    fn a_job_is_named_by_its_command() {
        for (text, name) in [
            ("nosuchserver --port 80 &", "nosuchserver --port 80"),
            ("cd x; a >log 2>&1 & sleep 1", "a >log 2>&1"),
            ("a & b && c &\nd", "b && c"),
            ("echo \"a;b\" &", "echo \"a;b\""),
            ("for i in 1; do nosuch; done &", "for i in 1; do nosuch; done"),
            ("x=1; for i in 1\ndo a\ndone &", "for i in 1 do a done"),
            ("{ a; b; } & wait", "{ a; b; }"),
            ("(true; nosuch) &", "(true; nosuch)"),
            ("python3 -c \"import nosuch\" & p=$!", "python3 -c \"import nosuch\""),
            ("if true; then a & fi", "a"),
            ("a | while read x; do y; done &", "a | while read x; do y; done"),
            ("sh -c 'a & b' & while kill -0 $p; do :; done", "sh -c 'a & b'"),
            ("case x in x) a & ;; esac", "a"),
            ("a \"$(b & c)\" ${d:-e} &", "a \"$(b & c)\" ${d:-e}"),
            ("# a & b\nc &", "c"),
            ("echo é & wait", "echo é"),
        ] {
            assert_eq!(last_job(text.as_bytes()).as_deref(), Some(name), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_followed_has_no_name() {
        for text in
            ["&", "ls", "(a &)", "x=$(a &)", "cat <<X &\na & b\nX", "a 'b &", "f() (a &", ""]
        {
            assert_eq!(last_job(text.as_bytes()), None, "{text}");
        }
    }
}

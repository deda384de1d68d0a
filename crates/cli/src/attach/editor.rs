//! The line editor: history, completion, and when a line is complete.

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hinter, HistoryHinter};
use rustyline::history::MemHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, CompletionType, Config, Context, EditMode, Editor, Helper, KeyEvent, Modifiers,
};
use sessile_protocol::Language;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

/// The user's input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(String),
    /// Ctrl-C: a new line.
    Dropped,
    Leave,
}

pub(super) type LineEditor = Editor<Assistant, MemHistory>;

/// Names that can be completed; looked up when they are first needed.
type LookUp = Box<dyn Fn() -> Names>;

#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) commands: BTreeSet<String>,
    pub(super) variables: BTreeSet<String>,
}

pub(super) struct Assistant {
    language: Language,
    /// The session's own program, which can tell when a text is complete.
    program: String,
    files: FilenameCompleter,
    hints: HistoryHinter,
    look_up: LookUp,
    names: RefCell<Option<Names>>,
}

impl Assistant {
    pub(super) fn new(language: Language, program: String, look_up: LookUp) -> Self {
        Self {
            language,
            program,
            files: FilenameCompleter::new(),
            hints: HistoryHinter::new(),
            look_up,
            names: RefCell::new(None),
        }
    }

    /// Forgets the names: a run may have changed them.
    pub(super) fn forget_names(&self) {
        self.names.replace(None);
    }
}

pub(super) fn editor(
    assistant: Assistant,
    mode: EditMode,
    detach_key: u8,
) -> rustyline::Result<LineEditor> {
    let config = Config::builder()
        .edit_mode(mode)
        .completion_type(CompletionType::List)
        .auto_add_history(false)
        .build();
    let mut editor = Editor::with_history(config, MemHistory::new())?;
    editor.set_helper(Some(assistant));
    let key = KeyEvent::new(char::from(detach_key), Modifiers::NONE);
    editor.bind_sequence(key, Cmd::EndOfFile);
    Ok(editor)
}

/// Reads the next line; `raw` and `styled` are the prompt, `typed` is the initial text.
pub(super) fn read(
    editor: &mut LineEditor,
    raw: &str,
    styled: &str,
    typed: &str,
) -> anyhow::Result<Line> {
    match editor.readline_with_initial(&(raw, styled), (typed, "")) {
        Ok(text) => Ok(Line::Text(text)),
        Err(ReadlineError::Interrupted) => Ok(Line::Dropped),
        Err(ReadlineError::Eof) => Ok(Line::Leave),
        // The terminal is gone.
        Err(ReadlineError::Io(_) | ReadlineError::Errno(_)) => Ok(Line::Leave),
        Err(error) => Err(error.into()),
    }
}

impl Helper for Assistant {}

impl Highlighter for Assistant {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        format!("\x1b[2m{hint}\x1b[0m").into()
    }
}

impl Hinter for Assistant {
    type Hint = String;

    fn hint(&self, line: &str, pos: usize, context: &Context<'_>) -> Option<String> {
        self.hints.hint(line, pos, context)
    }
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let mut names = self.names.borrow_mut();
        let names = names.get_or_insert_with(|| (self.look_up)());
        let before = &line[..pos];
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        if !self.language.is_shell() {
            let start = before.trim_end_matches(is_name).len();
            return Ok((start, pairs(&names.variables, &before[start..])));
        }
        let word = before.trim_end_matches(is_name).len();
        if before[..word].ends_with('$') || before[..word].ends_with("${") {
            return Ok((word, pairs(&names.variables, &before[word..])));
        }
        let start = before.rfind(|c: char| c.is_whitespace() || "|&;(".contains(c));
        let start = start.map_or(0, |at| at + 1);
        let is_first = before[..start].trim_end().is_empty()
            || before[..start].trim_end().ends_with(['|', '&', ';', '(']);
        if is_first && !before[start..].contains('/') && !before[start..].is_empty() {
            return Ok((start, pairs(&names.commands, &before[start..])));
        }
        self.files.complete_path(line, pos)
    }
}

fn pairs(names: &BTreeSet<String>, begin: &str) -> Vec<Pair> {
    let from = names.range(begin.to_owned()..).take_while(|name| name.starts_with(begin));
    from.map(|name| Pair { display: name.clone(), replacement: name.clone() }).collect()
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let is_complete = self.is_complete(context.input());
        Ok(if is_complete { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Assistant {
    /// Whether a text can be run as it is, or is incomplete.
    pub(super) fn is_complete(&self, text: &str) -> bool {
        match self.language {
            Language::Bash | Language::Sh | Language::Zsh => {
                text.trim().is_empty() || !self.wants_more(&["-n"], text)
            }
            Language::Python => is_whole_block(text) && !self.wants_more(&["-c", PYTHON], text),
            Language::Node => text.trim().is_empty() || !self.wants_more(&["-e", NODE], text),
        }
    }
}

/// Exits with 3 when the text is incomplete.
const PYTHON: &str = "import codeop, sys
try:
    sys.exit(3 if codeop.compile_command(sys.stdin.read(), symbol='exec') is None else 0)
except (SyntaxError, ValueError, OverflowError):
    sys.exit(0)";

const NODE: &str = "const text = require('fs').readFileSync(0, 'utf8');
try { new (require('vm').Script)(`(async () => {${text}\\n})`); } catch (error) {
  const open = /^(Unexpected end of input|Unterminated template literal|missing \\))/;
  process.exit(open.test(error.message) || /^Unexpected token '\\)'$/.test(error.message) && \
count(text) > 0 ? 3 : 0);
}
function count(text) {
  let open = 0;
  for (const c of text) open += '{(['.includes(c) ? 1 : '})]'.includes(c) ? -1 : 0;
  return open;
}";

/// In Python a block goes on until an empty line.
fn is_whole_block(text: &str) -> bool {
    let is_block =
        text.lines().count() > 1 && text.lines().skip(1).any(|l| l.starts_with([' ', '\t']));
    !is_block
        || text.ends_with('\n')
        || text.lines().last().is_some_and(|line| line.trim().is_empty())
}

impl Assistant {
    /// Whether the program says that a text is incomplete. A text with another error is
    /// run, and reports the error itself.
    fn wants_more(&self, arguments: &[&str], text: &str) -> bool {
        let child = Command::new(&self.program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            return false;
        };
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(text.as_bytes()).and_then(|()| stdin.write_all(b"\n"));
        }
        let Ok(done) = child.wait_with_output() else {
            return false;
        };
        if !self.language.is_shell() {
            return done.status.code() == Some(3);
        }
        let said = String::from_utf8_lossy(&done.stderr);
        let signs = [
            "unexpected end of file",
            "unexpected EOF",
            "end of file unexpected",
            "Unterminated quoted string",
            "unmatched ",
            "parse error near `\\n'",
            "delimited by end-of-file",
        ];
        text.ends_with('\\') || signs.iter().any(|sign| said.contains(sign))
    }
}

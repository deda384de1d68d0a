//! The functions that a text defines, for a shell that cannot list its own.
//!
//! A small parser of the POSIX shell language, which knows just enough to find
//! where each command ends. It is told nothing of aliases, nor of what the text
//! did when it ran: a [`Definition`] is what a name may stand for, and the shell
//! must be asked whether it is a function at all.
//!
//! When in doubt it leaves a definition out: a function that is reported lost
//! does less harm than one that comes back cut short. So it stops at the first
//! thing that it does not understand, and has nothing to say about what a
//! subshell, a pipeline, a background job or the body of another function
//! defines. What is defined on a condition counts as defined.

/// A function, in the words of the text that defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) name: String,
    /// From the name to the end of the body and its redirections.
    pub(super) source: String,
}

/// Commands in commands: far more than anyone writes, and far less than what
/// the keeper's stack has room for.
const DEPTH_LIMIT: usize = 60;

/// Names that no function of a POSIX shell can have.
const SPECIAL_BUILTINS: [&str; 15] = [
    "break", "continue", "eval", "exec", "exit", "export", "local", "readonly", "return", "set",
    "shift", "times", "trap", "unset", "source",
];

/// The functions that the text defines in the shell itself, in order.
pub(super) fn definitions(text: &str) -> Vec<Definition> {
    let mut parser = Parser { text, at: 0, depth: 0, here: Vec::new(), found: Vec::new() };
    let mut sure = 0;
    // A command at a time: one that is not understood takes nothing from those
    // before it.
    while parser.line_break().is_some() && parser.closer().is_some_and(|end| end.is_none()) {
        if parser.and_or().is_none() || parser.separator().is_none() {
            break;
        }
        sure = parser.found.len();
    }
    parser.found.truncate(sure);
    parser.found
}

/// What ends a list of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closer {
    End,
    Parenthesis,
    /// `;;`
    Break,
    Word(&'static str),
}

/// The reserved words that end a list.
const CLOSERS: [&str; 8] = ["}", "then", "else", "elif", "fi", "do", "done", "esac"];

/// How a command was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Simple,
    Compound,
    Definition,
}

/// A here-document whose body has not come yet.
#[derive(Debug)]
struct Here {
    delimiter: String,
    tabs: Tabs,
    body: Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tabs {
    Kept,
    Stripped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Literal,
    Expanded,
}

/// Whether an expansion stands in double quotes (or in a here-document).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quoted {
    Yes,
    No,
}

/// `None` means: not understood. `at` is then of no further use.
struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    here: Vec<Here>,
    found: Vec<Definition>,
}

/// Commands.
impl Parser<'_> {
    /// All up to what ends the list, which is left where it is.
    fn list(&mut self) -> Option<Closer> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return None;
        }
        loop {
            self.line_break()?;
            if let Some(closer) = self.closer()? {
                self.depth -= 1;
                return Some(closer);
            }
            self.and_or()?;
            self.separator()?;
        }
    }

    /// A list, and the reserved word that has to end it.
    fn list_until(&mut self, word: &'static str) -> Option<()> {
        (self.list()? == Closer::Word(word)).then(|| self.at += word.len())
    }

    /// What defines nothing in the shell itself.
    fn aside<T>(&mut self, parse: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = self.found.len();
        let parsed = parse(self);
        self.found.truncate(before);
        parsed
    }

    fn closer(&mut self) -> Option<Option<Closer>> {
        Some(match self.peek() {
            None => Some(Closer::End),
            Some(b')') => Some(Closer::Parenthesis),
            Some(b';') if self.rest().starts_with(";;") => Some(Closer::Break),
            Some(b';' | b'&' | b'|') => return None,
            Some(_) => self.reserved(&CLOSERS)?.map(Closer::Word),
        })
    }

    /// What parts two commands; nothing has to if the list ends here.
    fn separator(&mut self) -> Option<()> {
        self.blanks();
        match self.peek() {
            Some(b';') if !self.rest().starts_with(";;") => self.at += 1,
            Some(b'&') => self.at += 1,
            Some(b'\n') => {}
            Some(_) | None => return self.closer()?.map(drop),
        }
        Some(())
    }

    fn and_or(&mut self) -> Option<()> {
        let before = self.found.len();
        loop {
            self.pipeline()?;
            self.blanks();
            match self.rest().as_bytes() {
                [b'&', b'&', ..] | [b'|', b'|', ..] => self.at += 2,
                [b'&', ..] => {
                    self.found.truncate(before);
                    return Some(());
                }
                _ => return Some(()),
            }
            self.line_break()?;
        }
    }

    fn pipeline(&mut self) -> Option<()> {
        let before = self.found.len();
        while self.reserved(&["!"])?.is_some() {
            self.at += 1;
            self.blanks();
        }
        loop {
            self.command()?;
            self.blanks();
            match self.rest().as_bytes() {
                [b'|', b'|', ..] => return Some(()),
                [b'|', ..] => self.at += 1,
                _ => return Some(()),
            }
            self.line_break()?;
            self.aside(|p| p.command())?;
            self.found.truncate(before);
            self.blanks();
            match self.rest().as_bytes() {
                [b'|', b'|', ..] => return Some(()),
                [b'|', ..] => {}
                _ => return Some(()),
            }
            self.at += 1;
            self.line_break()?;
            self.found.truncate(before);
        }
    }
}

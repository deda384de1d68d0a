//! Finds the functions that a text defines, for a shell that cannot list its own.
//!
//! A small parser of the POSIX shell language that knows just enough to find where each
//! command ends. It does not know about aliases, nor about what the text did when it ran:
//! a [`Definition`] is what a name may stand for, and the shell must be asked whether it
//! is a function at all.
//!
//! When in doubt it leaves a definition out: a function that is reported lost does less
//! harm than one that comes back incomplete. So it stops at the first thing that it does
//! not understand, and ignores definitions in a subshell, a pipeline, a background job or
//! the body of another function. A conditional definition counts as defined.

mod redirections;
mod words;

use redirections::HereDocument;

/// A function, in the words of the text that defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) name: String,
    /// From the name to the end of the body and its redirections.
    pub(super) source: String,
}

/// Limit of nested commands: more than anyone writes, and far less than fits on the
/// keeper's stack.
const DEPTH_LIMIT: usize = 60;

/// Names that no function can have: dash refuses them.
const SPECIAL_BUILTINS: [&str; 14] = [
    "break", "continue", "eval", "exec", "exit", "export", "local", "readonly", "return", "set",
    "shift", "times", "trap", "unset",
];

/// Reserved words that begin a compound command, and those that end a list.
const OPENERS: [&str; 6] = ["{", "if", "while", "until", "for", "case"];
const CLOSERS: [&str; 8] = ["}", "then", "else", "elif", "fi", "do", "done", "esac"];

/// Returns the functions that the text defines in the shell itself, in order. A name may
/// come twice.
pub(super) fn definitions(text: &str) -> Vec<Definition> {
    let mut parser = Parser { text, at: 0, depth: 0, here: Vec::new(), found: Vec::new() };
    let mut sure = 0;
    // A command that is not understood does not affect those before it.
    while parser.top_level_command().is_some() {
        sure = parser.found.len();
    }
    parser.found.truncate(sure);
    parser.found
}

/// What ends a list of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closer {
    EndOfText,
    Parenthesis,
    /// `;;`
    NextCase,
    Word(&'static str),
}

/// The parser. Its functions return `None` for what is not understood; parsing cannot
/// continue after that.
struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    here: Vec<HereDocument>,
    found: Vec<Definition>,
}

/// Lists of commands.
impl Parser<'_> {
    fn top_level_command(&mut self) -> Option<()> {
        self.line_break()?;
        match self.closer()? {
            Some(_) => None,
            None => self.list_item(),
        }
    }

    /// Parses a list of at least one command, as required everywhere but in `case` and
    /// `$( )`.
    fn list(&mut self) -> Option<Closer> {
        self.line_break()?;
        match self.closer()? {
            Some(_) => None,
            None => self.possible_list(),
        }
    }

    /// Parses everything up to what ends the list, which is not taken.
    fn possible_list(&mut self) -> Option<Closer> {
        self.nested(|parser| {
            loop {
                parser.line_break()?;
                if let Some(closer) = parser.closer()? {
                    return Some(closer);
                }
                parser.list_item()?;
            }
        })
    }

    fn list_until(&mut self, word: &'static str) -> Option<()> {
        (self.list()? == Closer::Word(word)).then(|| self.at += word.len())
    }

    fn closer(&self) -> Option<Option<Closer>> {
        match self.rest() {
            [] => Some(Some(Closer::EndOfText)),
            [b')', ..] => Some(Some(Closer::Parenthesis)),
            [b';', b';', ..] => Some(Some(Closer::NextCase)),
            _ => Some(self.reserved(&CLOSERS)?.map(Closer::Word)),
        }
    }

    /// Parses pipelines joined by `&&` and `||`, and the separator after them.
    fn list_item(&mut self) -> Option<()> {
        let before = self.found.len();
        loop {
            self.pipeline()?;
            self.blanks();
            match self.rest() {
                [b'&', b'&', ..] | [b'|', b'|', ..] => self.at += 2,
                [b'&', ..] => {
                    self.found.truncate(before);
                    self.at += 1;
                    return Some(());
                }
                [b';', b';', ..] | [b'\n', ..] => return Some(()),
                [b';', ..] => {
                    self.at += 1;
                    return Some(());
                }
                // At the end of the list no separator is needed.
                _ => return self.closer()?.map(drop),
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
        self.command()?;
        loop {
            self.blanks();
            match self.rest() {
                [b'|', b'|', ..] => return Some(()),
                [b'|', ..] => self.at += 1,
                _ => return Some(()),
            }
            self.line_break()?;
            self.command()?;
            self.found.truncate(before);
        }
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth == DEPTH_LIMIT {
            return None;
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// Parses something that defines nothing in the shell itself.
    fn aside<T>(&mut self, parse: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = self.found.len();
        let parsed = parse(self);
        self.found.truncate(before);
        parsed
    }
}

/// Commands.
impl Parser<'_> {
    fn command(&mut self) -> Option<()> {
        if self.is_compound()? {
            return self.compound();
        }
        let start = self.at;
        match self.function_head()? {
            Some(name) => self.definition(start, name),
            None => self.simple(),
        }
    }

    /// `name ()`
    fn function_head(&mut self) -> Option<Option<String>> {
        let start = self.at;
        let Some(name) = self.name() else { return Some(None) };
        self.blanks();
        if self.peek() != Some(b'(') {
            self.at = start;
            return Some(None);
        }
        self.at += 1;
        self.blanks();
        self.take(b')')?;
        (!SPECIAL_BUILTINS.contains(&name.as_str())).then_some(Some(name))
    }

    fn definition(&mut self, start: usize, name: String) -> Option<()> {
        let alone = self.here.is_empty();
        self.line_break()?;
        if !self.is_compound()? {
            return self.simple();
        }
        self.aside(Self::compound)?;
        // The body of a here-document may come after the definition, or that of another
        // command inside it.
        if alone && self.here.is_empty() {
            let source = self.text.get(start..self.at)?.to_owned();
            self.found.push(Definition { name, source });
        }
        Some(())
    }

    fn is_compound(&self) -> Option<bool> {
        Some(self.peek() == Some(b'(') || self.reserved(&OPENERS)?.is_some())
    }

    fn compound(&mut self) -> Option<()> {
        match self.reserved(&OPENERS)? {
            Some(word) => {
                self.at += word.len();
                match word {
                    "{" => self.list_until("}")?,
                    "if" => self.conditional()?,
                    "for" => self.for_loop()?,
                    "case" => self.case()?,
                    _ => self.list_until("do").and_then(|()| self.list_until("done"))?,
                }
            }
            None => {
                self.take(b'(')?;
                self.aside(Self::list).filter(|end| *end == Closer::Parenthesis)?;
                self.at += 1;
            }
        }
        self.redirections()
    }

    fn conditional(&mut self) -> Option<()> {
        self.list_until("then")?;
        loop {
            let Closer::Word(word) = self.list()? else { return None };
            self.at += word.len();
            match word {
                "elif" => self.list_until("then")?,
                "else" => return self.list_until("fi"),
                "fi" => return Some(()),
                _ => return None,
            }
        }
    }

    fn for_loop(&mut self) -> Option<()> {
        self.blanks();
        self.name()?;
        self.line_break()?;
        if self.reserved(&["in"])?.is_some() {
            self.at += 2;
            self.blanks();
            while !matches!(self.peek(), Some(b';' | b'\n')) {
                self.word()?;
                self.blanks();
            }
        }
        if self.peek() == Some(b';') {
            self.at += 1;
        }
        self.line_break()?;
        self.reserved(&["do"])??;
        self.at += 2;
        self.list_until("done")
    }

    fn case(&mut self) -> Option<()> {
        self.blanks();
        self.word()?;
        self.line_break()?;
        self.reserved(&["in"])??;
        self.at += 2;
        loop {
            self.line_break()?;
            if self.reserved(&["esac"])?.is_some() {
                self.at += 4;
                return Some(());
            }
            self.pattern()?;
            match self.possible_list()? {
                Closer::NextCase => self.at += 2,
                Closer::Word("esac") => {}
                Closer::Word(_) | Closer::EndOfText | Closer::Parenthesis => return None,
            }
        }
    }

    /// `(a|b)`, the first parenthesis being optional.
    fn pattern(&mut self) -> Option<()> {
        if self.peek() == Some(b'(') {
            self.at += 1;
        }
        loop {
            self.blanks();
            self.word()?;
            self.blanks();
            match self.peek()? {
                b'|' => self.at += 1,
                _ => return self.take(b')'),
            }
        }
    }

    fn simple(&mut self) -> Option<()> {
        if self.reserved(&CLOSERS)?.is_some() || self.reserved(&["!", "in"])?.is_some() {
            return None;
        }
        let start = self.at;
        loop {
            let end = self.at;
            self.blanks();
            match self.peek() {
                Some(b'<' | b'>') => self.redirection()?,
                None | Some(b'\n' | b';' | b'&' | b'|' | b')') => {
                    self.at = end;
                    return (end > start).then_some(());
                }
                Some(_) => self.word()?,
            }
        }
    }
}

#[cfg(test)]
mod tests;

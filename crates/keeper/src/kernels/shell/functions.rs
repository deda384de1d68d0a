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

/// Commands within commands: more than anyone writes, and far less than what
/// the keeper's stack has room for.
const DEPTH_LIMIT: usize = 60;

/// Names that no function can have: dash refuses them.
const SPECIAL_BUILTINS: [&str; 14] = [
    "break", "continue", "eval", "exec", "exit", "export", "local", "readonly", "return", "set",
    "shift", "times", "trap", "unset",
];

/// Reserved words that begin a compound command, and those that end a list.
const OPENERS: [&str; 6] = ["{", "if", "while", "until", "for", "case"];
const CLOSERS: [&str; 8] = ["}", "then", "else", "elif", "fi", "do", "done", "esac"];

/// The functions that the text defines in the shell itself, in order. A name
/// may come twice.
pub(super) fn definitions(text: &str) -> Vec<Definition> {
    let mut parser = Parser { text, at: 0, depth: 0, here: Vec::new(), found: Vec::new() };
    let mut sure = 0;
    // What is not understood takes nothing from the commands before it.
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

/// A here-document whose body has not come yet.
#[derive(Debug)]
struct Here {
    delimiter: Vec<u8>,
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

/// Where an expansion stands. A here-document counts as quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    Plain,
    DoubleQuotes,
}

/// Its functions return `None` for what is not understood; there is no going on
/// after that.
struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    here: Vec<Here>,
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

    /// A list of at least one command, as every one has to be but those in
    /// `case` and `$( )`.
    fn list(&mut self) -> Option<Closer> {
        self.line_break()?;
        match self.closer()? {
            Some(_) => None,
            None => self.possible_list(),
        }
    }

    /// All up to what ends the list, which is left to be taken.
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

    /// Pipelines joined by `&&` and `||`, and what parts them from the next.
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
                // Nothing has to part it from the end of the list.
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

    /// What defines nothing in the shell itself.
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
        // The body of a here-document may lie behind the definition, or another
        // command's in the midst of it.
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

/// Redirections and here-documents.
impl Parser<'_> {
    fn redirections(&mut self) -> Option<()> {
        loop {
            let end = self.at;
            self.blanks();
            while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                self.at += 1;
            }
            match self.peek() {
                Some(b'<' | b'>') => self.redirection()?,
                Some(_) | None => {
                    self.at = end;
                    return Some(());
                }
            }
        }
    }

    fn redirection(&mut self) -> Option<()> {
        let (length, tabs) = match self.rest() {
            [b'<', b'<', b'-', ..] => (3, Some(Tabs::Stripped)),
            [b'<', b'<', ..] => (2, Some(Tabs::Kept)),
            [b'<', b'&' | b'>', ..] | [b'>', b'&' | b'>' | b'|', ..] => (2, None),
            _ => (1, None),
        };
        self.at += length;
        self.blanks();
        let start = self.at;
        self.word()?;
        if let Some(tabs) = tabs {
            let (delimiter, body) = unquote(self.text.as_bytes().get(start..self.at)?)?;
            self.here.push(Here { delimiter, tabs, body });
        }
        Some(())
    }

    /// At the beginning of a line: what the last one announced.
    fn here_documents(&mut self) -> Option<()> {
        for here in std::mem::take(&mut self.here) {
            let start = self.at;
            let end = self.skip_to_delimiter(&here)?;
            match here.body {
                Body::Literal => {}
                Body::Expanded => self.check_expansions(start, end)?,
            }
        }
        Some(())
    }

    /// Passes the line with the delimiter; returns where that begins.
    fn skip_to_delimiter(&mut self, here: &Here) -> Option<usize> {
        while !self.rest().is_empty() {
            let start = self.at;
            let rest = self.rest();
            let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let line = &rest[..length];
            let tabs = match here.tabs {
                Tabs::Kept => 0,
                Tabs::Stripped => line.iter().take_while(|byte| **byte == b'\t').count(),
            };
            let is_delimiter = line[tabs..] == here.delimiter[..];
            self.at = (start + length + 1).min(self.text.len());
            if is_delimiter {
                return Some(start);
            }
        }
        None
    }

    /// An expansion, or a backslash at the end of the last line, may have taken
    /// in what looks like the delimiter.
    fn check_expansions(&self, start: usize, end: usize) -> Option<()> {
        let text = self.text.get(..end)?;
        let (here, found) = (Vec::new(), Vec::new());
        let mut body = Parser { text, at: start, depth: self.depth, here, found };
        body.nested(|body| {
            while let Some(byte) = body.peek() {
                match byte {
                    b'\\' if body.rest() == b"\\\n" => return None,
                    b'\\' => body.escape()?,
                    b'`' => body.backquotes()?,
                    b'$' => body.dollar(Context::DoubleQuotes)?,
                    _ => body.at += 1,
                }
            }
            Some(())
        })
    }
}

/// Words.
impl Parser<'_> {
    fn word(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(byte) = self.peek() {
            match byte {
                _ if is_delimiter(byte) => break,
                b'\\' => self.escape()?,
                b'\'' => self.single_quotes()?,
                b'"' => self.double_quotes()?,
                b'`' => self.backquotes()?,
                b'$' => self.dollar(Context::Plain)?,
                _ => self.at += 1,
            }
        }
        (self.at > start).then_some(())
    }

    fn escape(&mut self) -> Option<()> {
        self.at += 2;
        (self.at <= self.text.len()).then_some(())
    }

    fn single_quotes(&mut self) -> Option<()> {
        self.at += 1;
        self.at += self.rest().iter().position(|byte| *byte == b'\'')? + 1;
        Some(())
    }

    fn double_quotes(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => return self.take(b'"'),
                b'\\' => self.escape()?,
                b'`' => self.backquotes()?,
                b'$' => self.dollar(Context::DoubleQuotes)?,
                _ => self.at += 1,
            }
        }
    }

    fn backquotes(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                b'`' => return self.take(b'`'),
                b'\\' => self.escape()?,
                _ => self.at += 1,
            }
        }
    }

    fn dollar(&mut self, context: Context) -> Option<()> {
        self.at += 1;
        match (self.rest(), context) {
            ([b'(', b'(', ..], _) => {
                self.at += 2;
                self.nested(Self::arithmetic)
            }
            ([b'(', ..], _) => {
                self.at += 1;
                self.substitution()
            }
            ([b'{', ..], _) => {
                self.at += 1;
                self.nested(|parser| parser.parameter(context))
            }
            // Not every shell reads `$'…'` in the same way, nor looks behind a
            // line's end.
            ([b'\'', ..], Context::Plain) | ([b'\\', b'\n', ..], _) => None,
            _ => Some(()),
        }
    }

    fn substitution(&mut self) -> Option<()> {
        let outer = std::mem::take(&mut self.here);
        self.aside(Self::possible_list).filter(|end| *end == Closer::Parenthesis)?;
        if !self.here.is_empty() {
            return None;
        }
        self.here = outer;
        self.take(b')')
    }

    fn arithmetic(&mut self) -> Option<()> {
        let mut open = 0_usize;
        loop {
            match self.peek()? {
                b'(' => {
                    open += 1;
                    self.at += 1;
                }
                b')' if open > 0 => {
                    open -= 1;
                    self.at += 1;
                }
                b')' => {
                    self.at += 1;
                    return self.take(b')');
                }
                b'\\' => self.escape()?,
                b'`' => self.backquotes()?,
                b'$' => self.dollar(Context::DoubleQuotes)?,
                b'\'' | b'"' => return None,
                _ => self.at += 1,
            }
        }
    }

    /// Behind `${`. Quotes within quotes mean different things to different
    /// shells, and with different operators.
    fn parameter(&mut self, context: Context) -> Option<()> {
        loop {
            match (self.peek()?, context) {
                (b'}', _) => return self.take(b'}'),
                (b'\\', _) => self.escape()?,
                (b'`', _) => self.backquotes()?,
                (b'$', _) => self.dollar(context)?,
                (b'\'', Context::Plain) => self.single_quotes()?,
                (b'"', Context::Plain) => self.double_quotes()?,
                (quote @ (b'\'' | b'"'), Context::DoubleQuotes) => self.harmless_quotes(quote)?,
                _ => self.at += 1,
            }
        }
    }

    /// Such as end in the same place however they are read.
    fn harmless_quotes(&mut self, quote: u8) -> Option<()> {
        self.at += 1;
        while self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || b" _./:,@%+-=$".contains(&b))
        {
            self.at += 1;
        }
        self.take(quote)
    }
}

/// Bytes.
impl Parser<'_> {
    fn rest(&self) -> &[u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn name(&mut self) -> Option<String> {
        let rest = self.rest();
        let length = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        let name =
            rest.get(..length).filter(|name| !name.first().is_none_or(u8::is_ascii_digit))?;
        let name = String::from_utf8(name.to_vec()).ok()?;
        self.at += length;
        Some(name)
    }

    /// Which of the words stands here, as a word of its own.
    fn reserved(&self, words: &[&'static str]) -> Option<Option<&'static str>> {
        for word in words {
            match self.rest().strip_prefix(word.as_bytes()) {
                // It may go on behind the line's end.
                Some([b'\\', b'\n', ..]) => return None,
                Some(rest) if rest.first().is_none_or(|byte| is_delimiter(*byte)) => {
                    return Some(Some(word));
                }
                Some(_) | None => {}
            }
        }
        Some(None)
    }

    /// Blanks, joined lines, and a comment up to the end of its line.
    fn blanks(&mut self) {
        loop {
            match self.rest() {
                [b' ' | b'\t', ..] => self.at += 1,
                [b'\\', b'\n', ..] => self.at += 2,
                [b'#', rest @ ..] => {
                    let length = rest.iter().position(|byte| *byte == b'\n');
                    self.at += 1 + length.unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    /// The same and ends of lines, with the here-documents behind them.
    fn line_break(&mut self) -> Option<()> {
        self.blanks();
        while self.peek() == Some(b'\n') {
            self.at += 1;
            self.here_documents()?;
            self.blanks();
        }
        Some(())
    }
}

/// What ends a word.
fn is_delimiter(byte: u8) -> bool {
    b" \t\n;&|<>()".contains(&byte)
}

/// The delimiter of a here-document, and what its quotes say of the body.
fn unquote(word: &[u8]) -> Option<(Vec<u8>, Body)> {
    let mut plain = Vec::new();
    let mut body = Body::Expanded;
    let mut rest = word;
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            b'$' | b'`' | b'\n' => return None,
            b'\\' => {
                body = Body::Literal;
                let (escaped, after) = rest.split_first().filter(|(byte, _)| **byte != b'\n')?;
                plain.push(*escaped);
                rest = after;
            }
            quote @ (b'\'' | b'"') => {
                body = Body::Literal;
                let length = rest.iter().position(|byte| byte == quote)?;
                let inside = &rest[..length];
                if inside.iter().any(|byte| b"\\$`\n".contains(byte)) {
                    return None;
                }
                plain.extend_from_slice(inside);
                rest = &rest[length + 1..];
            }
            _ => plain.push(*byte),
        }
    }
    Some((plain, body))
}

#[cfg(test)]
mod tests;

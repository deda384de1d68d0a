//! How much of a run a model is told: its streams as a person would finally see
//! them, and of what is long the beginning and the end.

mod fit;
mod stream;
#[cfg(test)]
mod tests;

pub use fit::fit;

use super::excerpt::{clip, cut, shares, weigh};
use crate::answer::{Encoding, Truncated};
use crate::tool::NextCall;
use serde_json::{Map, Value};
use sessile_protocol::{RunNo, RunValue, StreamView};
use std::path::{Path, PathBuf};
use stream::Prepared;

/// Bytes of what a run wrote, and of its value, in an answer: some four
/// thousand tokens.
pub const LIMIT: usize = 16_000;

/// The most that an answer of MCP has of it. The official Python client refuses
/// messages of a mebibyte, with all that is in them; this comes twice in one
/// message, as text and as structured content.
pub const MOST: usize = 200_000;

/// Forms of a value that are pictures: over MCP a model sees them, and they are
/// left out of the text.
pub const PICTURES: [&str; 2] = ["image/png", "image/jpeg"];

/// A form that is drawn for a model, if the value has no other picture.
pub const SVG: &str = "image/svg+xml";

/// Characters of a sentence (an error, a note) in an answer.
pub(crate) const SENTENCE: usize = 1_000;

/// Sentences of one kind in an answer.
pub(crate) const SENTENCES: usize = 10;

/// What a caller wants of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputOptions {
    pub limit: usize,
    pub form: Form,
}

impl Default for OutputOptions {
    fn default() -> Self {
        Self { limit: LIMIT, form: Form::Seen }
    }
}

impl OutputOptions {
    /// No more than a message of MCP can have.
    #[must_use]
    pub fn bounded(self) -> Self {
        Self { limit: self.limit.min(MOST), ..self }
    }
}

/// The form of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As a person finally sees it.
    Seen,
    /// As it was written.
    Raw,
}

/// How an answer is made to fit.
#[derive(Clone, Debug)]
pub struct Sizing {
    pub options: OutputOptions,
    pub rest: Rest,
}

/// How what was left out is read.
#[derive(Clone, Debug)]
pub enum Rest {
    /// By a call of the same tool.
    Call(NextCall),
    /// In the files of a session, by whoever can run a command there.
    Directory(PathBuf),
}

impl Rest {
    /// How to go on at that byte of a stream.
    fn from(&self, run: RunNo, stream: &str, at: u64) -> String {
        match self {
            Self::Call(call) => format!("read on with {}", call.output(run.0, stream, at)),
            Self::Directory(path) => {
                let file = quoted(&path.join(format!("runs/{run}.{stream}")));
                let from = at + 1;
                format!("read on with: tail -c +{from} {file} | head -c {}", LIMIT / 2)
            }
        }
    }
}

/// A path as a shell reads it.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    if path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// A stream as it is told.
#[derive(Debug)]
pub struct Shown {
    pub text: String,
    pub encoding: Option<Encoding>,
    pub truncated: Option<Truncated>,
    /// The text is not what was written, but what is seen of it.
    pub is_rendered: bool,
}

/// Both streams of a run and its value, as they are told together.
#[derive(Debug)]
pub struct ShownRun {
    pub stdout: Shown,
    pub stderr: Shown,
    pub value: Option<String>,
}

impl ShownRun {
    /// The streams that are told as they are seen.
    #[must_use]
    pub fn rendered(&self) -> Vec<&'static str> {
        let streams = [("stdout", &self.stdout), ("stderr", &self.stderr)];
        streams.into_iter().filter(|(_, shown)| shown.is_rendered).map(|(name, _)| name).collect()
    }
}

/// A stream of a run, and the byte of it that the view begins with.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    pub view: &'a StreamView,
    pub first: u64,
}

impl<'a> Written<'a> {
    /// A stream from its beginning on.
    #[must_use]
    pub fn whole(view: &'a StreamView) -> Self {
        Self { view, first: 0 }
    }
}

/// The value of a run.
#[derive(Clone, Copy, Debug)]
pub enum RunText<'a> {
    Nothing,
    Value(&'a str),
    /// A shell's: what it printed.
    Printed,
}

impl Sizing {
    /// A run within the limit: what is short leaves its room to the others.
    #[must_use]
    pub fn run(
        &self,
        run: RunNo,
        stdout: Written<'_>,
        stderr: Written<'_>,
        value: RunText<'_>,
    ) -> ShownRun {
        let stdout = Prepared::new(stdout, self, run, "stdout");
        let stderr = Prepared::new(stderr, self, run, "stderr");
        let lengths = [
            stdout.weigh(),
            stderr.weigh(),
            match value {
                RunText::Nothing => 0,
                RunText::Value(text) => weigh(text),
                RunText::Printed => stdout.weigh(),
            },
        ];
        let shares = shares(&lengths, self.options.limit);
        let stdout = stdout.show(match value {
            RunText::Nothing | RunText::Value(_) => shares[0],
            RunText::Printed => shares[0].min(shares[2]),
        });
        let value = match value {
            RunText::Nothing => None,
            RunText::Value(text) => Some(shortened(text, shares[2])),
            RunText::Printed => Some(stdout.text.trim_end_matches('\n').to_owned()),
        };
        ShownRun { stdout, stderr: stderr.show(shares[1]), value }
    }
}

impl Sizing {
    /// The richer forms of a value that there is room for, and a word on those
    /// that were left out.
    #[must_use]
    pub fn data(&self, value: Option<&RunValue>) -> (Option<Value>, Option<String>) {
        let Some(json) = value.and_then(|value| value.data_json.as_ref()) else {
            return (None, None);
        };
        let mut forms: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
        let (mut room, mut left_out) = (self.options.limit, Vec::new());
        let is_apart = matches!(self.rest, Rest::Call(_));
        forms.retain(|kind, form| {
            if is_apart && (PICTURES.contains(&kind.as_str()) || kind == SVG) {
                return false;
            }
            let length = fit::length(form);
            let fits = length <= room;
            if fits {
                room -= length;
            } else {
                left_out.push(format!("{kind} ({length} bytes)"));
            }
            fits
        });
        let data = (!forms.is_empty()).then_some(Value::Object(forms));
        let note = format!(
            "left out of the value's data: {}; a larger max_output has them",
            left_out.join(", ")
        );
        (data, (!left_out.is_empty()).then_some(note))
    }
}

/// A text that is nowhere else.
fn shortened(text: &str, limit: usize) -> String {
    let Some(cut) = cut(text, limit) else { return text.to_owned() };
    let left_out = cut.tail - cut.head;
    let (head, tail) = (&text[..cut.head], &text[cut.tail..]);
    format!(
        "{head}\n[… {left_out} of {} bytes left out; print a part of it to see that …]\n{tail}",
        text.len()
    )
}

/// Sentences that a model is told, none of them too long.
#[must_use]
pub fn sentences(all: &[String]) -> Vec<String> {
    let mut told: Vec<String> =
        all.iter().take(SENTENCES).map(|text| clip(text, SENTENCE)).collect();
    if all.len() > SENTENCES {
        told.push(format!("and {} more notes", all.len() - SENTENCES));
    }
    told
}

/// A sentence that is not too long.
#[must_use]
pub fn sentence(text: &str) -> String {
    clip(text, SENTENCE)
}

/// A text that goes to a model as a whole: the beginning and the end, if it is
/// too long.
#[must_use]
pub fn bounded(text: String, limit: usize) -> String {
    let Some(cut) = cut(&text, limit) else { return text };
    let left_out = cut.tail - cut.head;
    let (head, tail) = (&text[..cut.head], &text[cut.tail..]);
    format!("{}\n[… {left_out} bytes left out …]\n{tail}", head.trim_end_matches('\n'))
}

//! How much of a run a model gets: its streams as a person would finally see them, and of
//! long ones the beginning and the end.

mod fit;
mod stream;
#[cfg(test)]
mod tests;

pub use fit::fit;

use super::excerpt::{clip, cut, encoded_len, shares};
use crate::answer::{Encoding, Truncated};
use crate::tool::NextCall;
use serde_json::{Map, Value};
use sessile_protocol::{RunNo, RunValue, StreamView};
use std::path::{Path, PathBuf};
use stream::Prepared;

/// Size limit of a run's output and value in an answer: some four thousand tokens.
pub const LIMIT: usize = 16_000;

/// The maximum of that limit for MCP. The official Python client refuses messages of a
/// mebibyte in total, and the output comes twice in a message, as text and as structured content.
pub const MOST: usize = 200_000;

/// Forms of a value that are pictures. Over MCP a model sees them, and they are left out
/// of the text.
pub const PICTURES: [&str; 2] = ["image/png", "image/jpeg"];

/// A form that is drawn for a model, if the value has no other picture.
pub const SVG: &str = "image/svg+xml";

/// Limit for the characters of a sentence (an error, a note) in an answer.
pub(crate) const SENTENCE: usize = 1_000;

/// How many sentences of one kind an answer has.
pub(crate) const SENTENCES: usize = 10;

/// What a caller wants of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputOptions {
    pub limit: usize,
    pub form: TextForm,
}

impl Default for OutputOptions {
    fn default() -> Self {
        Self { limit: LIMIT, form: TextForm::Rendered }
    }
}

impl OutputOptions {
    /// Limits it to what fits into a message of MCP.
    #[must_use]
    pub fn bounded(self) -> Self {
        Self { limit: self.limit.min(MOST), ..self }
    }
}

/// The form of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// As a person finally sees it.
    Rendered,
    /// As it was written.
    Raw,
}

/// How an answer is made to fit.
#[derive(Clone, Debug)]
pub struct Sizing {
    pub options: OutputOptions,
    pub rest: Rest,
}

/// How to read what was left out.
#[derive(Clone, Debug)]
pub enum Rest {
    /// By a call of the same tool.
    Call(NextCall),
    /// In the files of a session, for a client that can run commands there.
    Directory(PathBuf),
}

impl Rest {
    /// Says how to read on from a byte of a stream.
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

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    if path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// A stream in its final form.
#[derive(Debug)]
pub struct ShownStream {
    pub text: String,
    pub encoding: Option<Encoding>,
    pub truncated: Option<Truncated>,
    /// The text is rendered, not as it was written.
    pub is_rendered: bool,
}

/// Both streams of a run and its value, sized together.
#[derive(Debug)]
pub struct ShownRun {
    pub stdout: ShownStream,
    pub stderr: ShownStream,
    pub value: Option<String>,
}

impl ShownRun {
    /// Returns the streams that are rendered.
    #[must_use]
    pub fn rendered(&self) -> Vec<&'static str> {
        let streams = [("stdout", &self.stdout), ("stderr", &self.stderr)];
        streams.into_iter().filter(|(_, shown)| shown.is_rendered).map(|(name, _)| name).collect()
    }
}

/// A stream of a run, and the offset where the view begins.
#[derive(Clone, Copy, Debug)]
pub struct StreamFrom<'a> {
    pub view: &'a StreamView,
    pub first: u64,
}

impl<'a> StreamFrom<'a> {
    /// Returns a stream from its beginning on.
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
    /// A shell's value: its output.
    Printed,
}

impl Sizing {
    /// Sizes a run to the limit: short parts leave their room to the others.
    #[must_use]
    pub fn run(
        &self,
        run: RunNo,
        stdout: StreamFrom<'_>,
        stderr: StreamFrom<'_>,
        value: RunText<'_>,
    ) -> ShownRun {
        let stdout = Prepared::new(stdout, self, run, "stdout");
        let stderr = Prepared::new(stderr, self, run, "stderr");
        let lengths = [
            stdout.encoded_len(),
            stderr.encoded_len(),
            match value {
                RunText::Nothing => 0,
                RunText::Value(text) => encoded_len(text),
                RunText::Printed => stdout.encoded_len(),
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
    /// Returns the richer forms of a value that fit, and a note on those that were left out.
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

/// Shortens a text that cannot be read elsewhere.
fn shortened(text: &str, limit: usize) -> String {
    let Some(cut) = cut(text, limit) else { return text.to_owned() };
    let left_out = cut.tail - cut.head;
    let (head, tail) = (&text[..cut.head], &text[cut.tail..]);
    format!(
        "{head}\n[… {left_out} of {} bytes left out; print a part of it to see that …]\n{tail}",
        text.len()
    )
}

/// Returns sentences for a model, limited in number and length.
#[must_use]
pub fn sentences(all: &[String]) -> Vec<String> {
    let mut told: Vec<String> =
        all.iter().take(SENTENCES).map(|text| clip(text, SENTENCE)).collect();
    if all.len() > SENTENCES {
        told.push(format!("and {} more notes", all.len() - SENTENCES));
    }
    told
}

/// Returns a sentence of limited length.
#[must_use]
pub fn sentence(text: &str) -> String {
    clip(text, SENTENCE)
}

/// Returns a whole text for a model: the beginning and the end, if it is too long.
#[must_use]
pub fn bounded(text: String, limit: usize) -> String {
    let Some(cut) = cut(&text, limit) else { return text };
    let left_out = cut.tail - cut.head;
    let (head, tail) = (&text[..cut.head], &text[cut.tail..]);
    format!("{}\n[… {left_out} bytes left out …]\n{tail}", head.trim_end_matches('\n'))
}

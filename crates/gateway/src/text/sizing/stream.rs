//! Prepares a stream for an answer, and cuts it.

use super::super::excerpt::{beginning, cut, encoded_len, ending};
use super::super::frames;
use super::super::screen::{RenderedText, settle};
use super::{ShownStream, Sizing, StreamFrom, TextForm};
use crate::answer::{Encoding, Truncated, whole_end, whole_start};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sessile_protocol::{RunNo, StreamView};
use std::borrow::Cow;
use std::fmt::Write;

/// A stream before it is cut.
pub(super) struct Prepared<'a> {
    content: Content<'a>,
    view: &'a StreamView,
    first: u64,
    sizing: &'a Sizing,
    run: RunNo,
    name: &'static str,
}

enum Content<'a> {
    /// With the offset of the tail in the view's bytes, if there is a gap before it.
    Text {
        head: RenderedText<'a>,
        tail: Option<(RenderedText<'a>, u64)>,
        is_rendered: bool,
    },
    Bytes,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(
        written: StreamFrom<'a>,
        sizing: &'a Sizing,
        run: RunNo,
        name: &'static str,
    ) -> Self {
        let StreamFrom { view, first } = written;
        let mut prepared = Self { content: Content::Bytes, view, first, sizing, run, name };
        let is_raw = sizing.options.form == TextForm::Raw;
        let text = parts(view).filter(|(head, tail)| {
            is_raw
                || has_something_to_see(head)
                || tail.is_some_and(|(tail, _)| has_something_to_see(tail))
        });
        if let Some((head, tail)) = text {
            let (head, is_head_rendered) = prepared.settled(head, 0);
            let tail = tail.map(|(text, at)| (prepared.settled(Cow::Borrowed(text), at), at));
            let is_tail_rendered = matches!(&tail, Some(((_, true), _)));
            prepared.content = Content::Text {
                head,
                tail: tail.map(|((settled, _), at)| (settled, at)),
                is_rendered: is_head_rendered || is_tail_rendered,
            };
        }
        prepared
    }

    /// Returns a text that begins at this offset of the view, in the requested form, and
    /// whether it was rendered.
    fn settled(&self, text: Cow<'a, str>, at: u64) -> (RenderedText<'a>, bool) {
        let is_raw = self.sizing.options.form == TextForm::Raw;
        if is_raw || is_seen_as_written(&text) {
            let settled = match text {
                Cow::Borrowed(text) => RenderedText::untouched(text),
                Cow::Owned(text) => RenderedText::of_lines(text, Vec::new()),
            };
            let folded = match is_raw {
                true => None,
                false => frames::fold(&settled, |origin| self.rest(at + origin as u64)),
            };
            return match folded {
                Some(folded) => (folded, true),
                None => (settled, false),
            };
        }
        let settled = settle(&text).into_owned();
        let folded = frames::fold(&settled, |origin| self.rest(at + origin as u64));
        (folded.unwrap_or(settled), true)
    }

    fn rest(&self, at: u64) -> String {
        self.sizing.rest.from(self.run, self.name, self.first + at)
    }

    pub(super) fn encoded_len(&self) -> usize {
        match &self.content {
            Content::Text { head, tail, .. } => {
                encoded_len(&head.text)
                    + tail.as_ref().map_or(0, |(tail, _)| encoded_len(&tail.text))
            }
            Content::Bytes => (self.view.head.len() + self.view.tail.len()) * 4 / 3 + 4,
        }
    }

    pub(super) fn show(&self, limit: usize) -> ShownStream {
        match &self.content {
            Content::Bytes => self.show_bytes(limit),
            Content::Text { head, tail: None, is_rendered } => {
                let text = &*head.text;
                let Some(cut) = cut(text, limit) else {
                    return ShownStream::whole(text.to_owned(), *is_rendered);
                };
                let (from, to) = (head.origin(cut.head) as u64, head.origin(cut.tail) as u64);
                self.show_ends(&text[..cut.head], from, &text[cut.tail..], to, *is_rendered)
            }
            Content::Text { head, tail: Some((tail, at)), is_rendered } => {
                let ends = limit / 2;
                let from = beginning(&head.text, limit - ends);
                let to = ending(&tail.text, ends);
                let origins = (head.origin(from) as u64, at + tail.origin(to) as u64);
                let (head, tail) = (&head.text[..from], &tail.text[to..]);
                self.show_ends(head, origins.0, tail, origins.1, *is_rendered)
            }
        }
    }

    /// Returns the beginning, up to offset `from` of the view, and the end, from offset `to`.
    fn show_ends(
        &self,
        head: &str,
        from: u64,
        tail: &str,
        to: u64,
        is_rendered: bool,
    ) -> ShownStream {
        let mut text = head.to_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let (left_out, total) = (to.saturating_sub(from), self.view.total);
        let _ = writeln!(text, "[… {left_out} of {total} bytes left out; {} …]", self.rest(from));
        text.push_str(tail);
        let truncated = self.truncated(from, total.saturating_sub(to));
        ShownStream { text, encoding: None, truncated: Some(truncated), is_rendered }
    }

    fn show_bytes(&self, limit: usize) -> ShownStream {
        let (head, tail) = (&self.view.head, &self.view.tail);
        let all = [&head[..], &tail[..]].concat();
        let most = (limit / 4 * 3).min(all.len());
        let encoding = Some(Encoding::Base64);
        if most == all.len() && self.view.dropped() == 0 {
            return ShownStream {
                text: STANDARD.encode(all),
                encoding,
                truncated: None,
                is_rendered: false,
            };
        }
        // If the view has a gap, its end is in the tail and its beginning in the head.
        let ends = (most / 2).min(if self.view.dropped() == 0 { all.len() } else { tail.len() });
        let begins =
            (most - most / 2).min(if self.view.dropped() == 0 { all.len() } else { head.len() });
        let kept = [&all[..begins], &all[all.len() - ends..]].concat();
        let truncated = Some(self.truncated(begins as u64, ends as u64));
        ShownStream { text: STANDARD.encode(kept), encoding, truncated, is_rendered: false }
    }

    fn truncated(&self, head_bytes: u64, tail_bytes: u64) -> Truncated {
        let StreamView { total, stored, .. } = *self.view;
        Truncated {
            dropped_bytes: total.saturating_sub(head_bytes + tail_bytes),
            head_bytes,
            tail_bytes,
            total_bytes: total,
            stored_bytes: stored,
            file: format!("runs/{}.{}", self.run, self.name),
        }
    }
}

impl ShownStream {
    fn whole(text: String, is_rendered: bool) -> Self {
        Self { text, encoding: None, truncated: None, is_rendered }
    }
}

/// Returns the text of a stream: all of it, or its head, and its tail with the tail's
/// offset. None if it is not text.
#[expect(clippy::type_complexity, reason = "two texts, one of which has a place")]
fn parts(view: &StreamView) -> Option<(Cow<'_, str>, Option<(&str, u64)>)> {
    if view.dropped() == 0 {
        if view.tail.is_empty() {
            return Some((Cow::Borrowed(std::str::from_utf8(&view.head).ok()?), None));
        }
        let all = [&view.head[..], &view.tail[..]].concat();
        return Some((Cow::Owned(String::from_utf8(all).ok()?), None));
    }
    let head = &view.head[..whole_end(&view.head)];
    let start = whole_start(&view.tail);
    let at = view.total - (view.tail.len() - start) as u64;
    let tail = std::str::from_utf8(&view.tail[start..]).ok()?;
    Some((Cow::Borrowed(std::str::from_utf8(head).ok()?), Some((tail, at))))
}

/// Whether a text has more than bytes that mean nothing to a terminal. Bytes that move
/// its cursor or clear its screen do mean something.
fn has_something_to_see(text: &str) -> bool {
    let is_of_no_text = |c: char| c.is_control() && !"\n\r\t\u{7}\u{8}\u{b}\u{c}\u{1b}".contains(c);
    text.is_empty()
        || text.chars().any(|c| !is_of_no_text(c) && !c.is_whitespace())
        || !text.chars().any(is_of_no_text)
}

/// Whether a text has nothing that is only for a terminal. Windows line ends are not: a
/// program that looks for them finds them.
fn is_seen_as_written(text: &str) -> bool {
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        let is_plain = match byte {
            b'\n' | b'\t' => true,
            b'\r' => bytes.peek() == Some(&b'\n'),
            0x7f => false,
            // Two-byte control characters begin with this byte.
            0xc2 => bytes.peek().is_none_or(|next| *next >= 0xa0),
            byte => byte >= b' ',
        };
        if !is_plain {
            return false;
        }
    }
    true
}

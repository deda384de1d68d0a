//! Pictures of a run: figures and images that are its value, or that it printed
//! (`cat plot.png`).

use super::drawing;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use sessile_gateway::text::{PICTURES, SVG};
use sessile_protocol::{Completed, StreamView};
use std::path::Path;

/// A picture in the form that a client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) kind: &'static str,
    pub(crate) base64: String,
}

impl Picture {
    pub(super) fn png(bytes: &[u8]) -> Self {
        Self { kind: "image/png", base64: STANDARD.encode(bytes) }
    }
}

impl From<Picture> for Pictures {
    fn from(picture: Picture) -> Self {
        Self { list: vec![picture], ..Self::default() }
    }
}

/// What a model sees of a run's value.
#[derive(Debug, Default)]
pub(crate) struct Pictures {
    pub(crate) list: Vec<Picture>,
    /// What it does not see, and why.
    pub(crate) notes: Vec<String>,
    /// The length of stdout, if stdout is nothing but a picture.
    pub(crate) printed: Option<usize>,
}

/// How many SVGs of one value are drawn: each takes a process.
const MOST_DRAWINGS: usize = 4;

/// Returns the pictures of a run's value, which may be a list of them. `program` draws SVGs.
pub(crate) async fn of(done: &Completed, program: &Path) -> Pictures {
    let data = done.result.as_ref().and_then(|value| value.data_json.as_ref());
    let forms: Map<String, Value> =
        data.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    // The first kind that exists: the others are the same picture.
    if PICTURES.iter().any(|kind| forms.contains_key(*kind)) {
        return Pictures { list: encoded(&forms), ..Pictures::default() };
    }
    if !forms.contains_key(SVG)
        && let Some(printed) = PrintedPicture::of(&done.stdout)
    {
        return printed.pictures(program).await;
    }
    let mut pictures = Pictures::default();
    for (at, svg) in forms.get(SVG).map(texts).unwrap_or_default().into_iter().enumerate() {
        if at == MOST_DRAWINGS {
            pictures.notes.push(format!("only the first {MOST_DRAWINGS} pictures are drawn"));
            break;
        }
        let drawn = drawing::draw(program.to_owned(), svg.to_owned()).await;
        pictures.list.extend(drawn.picture);
        pictures.notes.extend(drawn.notes);
    }
    pictures
}

/// A picture that is all of a run's output.
#[derive(Debug, PartialEq, Eq)]
enum PrintedPicture {
    Encoded { kind: &'static str, bytes: Vec<u8> },
    Svg(String),
}

/// Size limit of a printed picture: a larger one would not fit into a message.
const MOST_PRINTED: u64 = 300_000;

impl PrintedPicture {
    /// Recognizes a picture by its first bytes.
    fn of(stdout: &StreamView) -> Option<Self> {
        if stdout.dropped() > 0 || stdout.total > MOST_PRINTED {
            return None;
        }
        let bytes = [&stdout.head[..], &stdout.tail[..]].concat();
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            return Some(Self::Encoded { kind: "image/png", bytes });
        }
        if bytes.starts_with(b"\xff\xd8\xff") {
            return Some(Self::Encoded { kind: "image/jpeg", bytes });
        }
        let text = String::from_utf8(bytes).ok()?;
        let (from, to) = (text.trim_start(), text.trim_end());
        let is_svg = (from.starts_with("<svg") || from.starts_with("<?xml"))
            && from.contains("<svg")
            && to.ends_with("</svg>");
        is_svg.then_some(Self::Svg(text))
    }

    async fn pictures(self, program: &Path) -> Pictures {
        match self {
            Self::Encoded { kind, bytes } => {
                let picture = Picture { kind, base64: STANDARD.encode(&bytes) };
                Pictures { printed: Some(bytes.len()), ..picture.into() }
            }
            // The text stays as well: the model may want to read it.
            Self::Svg(svg) => {
                let drawn = drawing::draw(program.to_owned(), svg).await;
                let list = drawn.picture.into_iter().collect();
                Pictures { list, notes: drawn.notes, printed: None }
            }
        }
    }
}

fn texts(form: &Value) -> Vec<&str> {
    match form {
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => vec![text.as_str()],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

/// Returns the pictures that need no drawing.
fn encoded(forms: &Map<String, Value>) -> Vec<Picture> {
    let found = PICTURES.iter().find_map(|kind| Some((*kind, forms.get(*kind)?)));
    let Some((kind, form)) = found else { return Vec::new() };
    let picture = |text: &str| {
        // Some libraries break the lines of base64.
        let base64: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        STANDARD.decode(&base64).ok().map(|_| Picture { kind, base64 })
    };
    texts(form).into_iter().filter_map(picture).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(forms: &Value) -> Vec<Picture> {
        encoded(forms.as_object().unwrap())
    }

    #[test]
    fn what_is_printed_is_a_picture_by_its_first_bytes() {
        let of = |bytes: &[u8]| {
            let total = bytes.len() as u64;
            let view = StreamView { head: bytes.to_vec(), tail: Vec::new(), total, stored: total };
            PrintedPicture::of(&view)
        };
        let kind = |bytes: &[u8]| match of(bytes) {
            Some(PrintedPicture::Encoded { kind, .. }) => kind,
            Some(PrintedPicture::Svg(_)) => "svg",
            None => "none",
        };
        assert_eq!(kind(b"\x89PNG\r\n\x1a\n..."), "image/png");
        assert_eq!(kind(b"\xff\xd8\xff\xe0..."), "image/jpeg");
        assert_eq!(kind(b"<?xml version='1.0'?>\n<svg></svg>\n"), "svg");
        for other in [&b"a \x89PNG\r\n\x1a\n"[..], b"", b"<svg> and more", b"<?xml?><html/>"] {
            assert_eq!(kind(other), "none");
        }
        assert_eq!(kind(&[b"\x89PNG\r\n\x1a\n", &[0; 300_000][..]].concat()), "none");
    }

    #[test]
    fn a_value_has_one_picture_or_several() {
        let two = serde_json::json!({"image/png": ["aGk=", "a G8\n="], "image/jpeg": "aGk="});
        let kinds: Vec<_> = of(&two).into_iter().map(|p| (p.kind, p.base64)).collect();
        assert_eq!(kinds, [("image/png", "aGk=".to_owned()), ("image/png", "aG8=".to_owned())]);
        let jpeg = serde_json::json!({"image/jpeg": "aGk=", "text/html": "x"});
        assert_eq!(of(&jpeg).len(), 1);
        let none = serde_json::json!({"image/png": "~", "image/jpeg": 7});
        assert_eq!(of(&none), []);
    }
}

//! Pictures that a run's value has: figures, images.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use sessile_gateway::text::PICTURES;
use sessile_protocol::Completed;

/// A picture as a client is given it.
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

/// The pictures of a run's value: one of each kind, or a list of them.
pub(crate) fn of(done: &Completed) -> Vec<Picture> {
    let data = done.result.as_ref().and_then(|value| value.data_json.as_ref());
    let forms: Map<String, Value> =
        data.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    // The first kind that there is: the others are the same picture.
    let found = PICTURES.iter().find_map(|kind| Some((*kind, forms.get(*kind)?)));
    let Some((kind, form)) = found else { return Vec::new() };
    let texts = match form {
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => vec![text.as_str()],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    let picture = |text: &str| {
        // Some libraries break the lines of base64.
        let base64: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        STANDARD.decode(&base64).ok().map(|_| Picture { kind, base64 })
    };
    texts.into_iter().filter_map(picture).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessile_protocol::{KernelFate, Language, RunNo, RunValue, StreamView};

    fn done(data: &Value) -> Completed {
        Completed {
            run: RunNo(1),
            language: Language::Python,
            exit_code: 0,
            duration_us: 1,
            stdout: StreamView::default(),
            stderr: StreamView::default(),
            kernel: KernelFate::Kept,
            timed_out: false,
            interrupted: false,
            result: Some(RunValue { text: "x".to_owned(), data_json: Some(data.to_string()) }),
            error: None,
            notes: Vec::new(),
            repeated: false,
            unread: Vec::new(),
        }
    }

    #[test]
    fn a_value_has_one_picture_or_several() {
        let two = serde_json::json!({"image/png": ["aGk=", "a G8\n="], "image/jpeg": "aGk="});
        let kinds: Vec<_> = of(&done(&two)).into_iter().map(|p| (p.kind, p.base64)).collect();
        assert_eq!(kinds, [("image/png", "aGk=".to_owned()), ("image/png", "aG8=".to_owned())]);
        let jpeg = serde_json::json!({"image/jpeg": "aGk=", "text/html": "x"});
        assert_eq!(of(&done(&jpeg)).len(), 1);
        let none = serde_json::json!({"image/png": "~", "image/jpeg": 7});
        assert_eq!(of(&done(&none)), []);
    }
}

//! The last resort for an answer that is too long although its parts were sized.

use super::super::excerpt::clip;
use serde_json::{Map, Value};
use std::io;

/// The limits for lists and for texts, from the first try to the last.
const TRIES: [(usize, usize); 9] = [
    (200, 4000),
    (100, 2000),
    (50, 1000),
    (30, 500),
    (20, 200),
    (10, 100),
    (5, 50),
    (2, 20),
    (0, 20),
];

/// How many shortened items are named.
const NAMED: usize = 10;

/// Fields that were sized before, with advice on how to read the rest.
const SIZED: [&str; 3] = ["stdout", "stderr", "result"];

/// Shortens lists and texts until the answer without the `SIZED` fields has at most
/// `limit` bytes. `shortened` lists what was shortened.
pub fn fit(answer: &mut Map<String, Value>, limit: usize) {
    if size(answer) <= limit {
        return;
    }
    for (items, characters) in TRIES {
        let mut shorter = answer.clone();
        let mut told = Vec::new();
        for (name, value) in &mut shorter {
            if !SIZED.contains(&name.as_str()) {
                shorten(value, name, items, characters, &mut told);
            }
        }
        let is_last = items == 0;
        if size(&shorter) > limit && !is_last {
            continue;
        }
        let more = told.len().saturating_sub(NAMED);
        told.truncate(NAMED);
        if more > 0 {
            told.push(format!("and {more} more"));
        }
        shorter.insert("shortened".to_owned(), told.into());
        *answer = shorter;
        return;
    }
}

/// Returns the bytes of an answer without the fields that were sized before.
fn size(answer: &Map<String, Value>) -> usize {
    let sized = |(name, _): &(&String, &Value)| !SIZED.contains(&name.as_str());
    answer.iter().filter(sized).map(|(name, value)| name.len() + 4 + length(value)).sum()
}

/// Returns the bytes of a value as JSON.
pub(super) fn length(value: &Value) -> usize {
    let mut count = Count(0);
    // Counting does not fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn shorten(value: &mut Value, path: &str, items: usize, characters: usize, told: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            if text.len() > characters && text.chars().nth(characters).is_some() {
                told.push(format!("{path}: {characters} of {} characters", text.chars().count()));
                *text = clip(text, characters);
            }
        }
        Value::Array(list) => {
            if list.len() > items {
                told.push(format!("{path}: {items} of {}", list.len()));
                list.truncate(items);
            }
            let path = format!("{path}[]");
            list.iter_mut().for_each(|item| shorten(item, &path, items, characters, told));
        }
        Value::Object(fields) => {
            // There are few fields, unless their names are data.
            let most = items.max(20);
            if fields.len() > most {
                told.push(format!("{path}: {most} of {}", fields.len()));
                *fields = std::mem::take(fields).into_iter().take(most).collect();
            }
            for (name, value) in fields {
                let path = format!("{path}.{}", clip(name, 50));
                shorten(value, &path, items, characters, told);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fitted(answer: Value, limit: usize) -> Value {
        let Value::Object(mut answer) = answer else { panic!("an object") };
        fit(&mut answer, limit);
        answer.into()
    }

    #[test]
    fn what_fits_is_as_it_was() {
        let answer = json!({"success": true, "stdout": "x".repeat(5000), "jobs": [1, 2]});
        assert_eq!(fitted(answer.clone(), 100), answer);
    }

    #[test]
    fn a_long_list_is_told_as_shortened() {
        let row = json!({"session_id": "sess_1", "command": "x".repeat(300)});
        let answer = fitted(json!({"sessions": vec![row; 730], "more": false}), 24_000);
        assert!(answer.to_string().len() < 24_200, "{}", answer.to_string().len());
        assert_eq!(answer["more"], false);
        assert_eq!(answer["shortened"][0], "sessions: 50 of 730");
    }

    #[test]
    fn whatever_it_is_it_fits() {
        let mut deep = json!("x".repeat(100_000));
        for n in 0..20 {
            deep = json!({"a": [deep], format!("{n}"): "y".repeat(9000)});
        }
        let wide: Map<String, Value> =
            (0..10_000).map(|n| (format!("name{n}"), json!({"repr": "z".repeat(400)}))).collect();
        for answer in [json!({"state": deep}), json!({"state": {"variables": wide}})] {
            let told = fitted(answer, 16_000).to_string();
            assert!(told.len() < 18_000, "{}", told.len());
        }
    }
}

//! The output of a command-line agent: one JSON object per line.
//!
//! ```text
//! {"type": "text", "text": "Looking at the tests"}
//! {"type": "tool_call", "id": "1", "tool": "shell", "input": {"command": "pytest"}}
//! {"type": "tool_result", "id": "1", "text": "2 passed", "is_error": false}
//! {"type": "usage", "input_tokens": 900, "cached_tokens": 0, "output_tokens": 40}
//! {"type": "result", "text": "All tests pass"}
//! ```
//!
//! Its calls are its own: they are reported, not performed. Usages are added up. The first
//! result ends its answer. A line that is not JSON is text, so that a program with other
//! output is still understood; an object of an unknown type is skipped, because programs
//! add new ones.

use crate::model::{Block, Failure, FailureKind, Reply, Stop, Usage};
use crate::thread::Activity;
use serde::Deserialize;
use serde_json::Value;

/// A longer line is not an answer.
const LONGEST: usize = 4 << 20;

/// Maximum length of a text in the output that is not JSON.
const PLAIN: usize = 2000;

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Text {
        text: String,
    },
    ToolCall {
        #[serde(default)]
        id: String,
        tool: String,
        #[serde(default)]
        input: Value,
    },
    ToolResult {
        #[serde(default)]
        id: String,
        #[serde(default)]
        text: String,
        #[serde(default)]
        is_error: bool,
    },
    Usage(Usage),
    Result {
        #[serde(default)]
        text: String,
        #[serde(default)]
        is_error: bool,
    },
}

/// The parsed output of a program so far.
#[derive(Debug, Default)]
pub struct ProgramOutput {
    rest: Vec<u8>,
    usage: Usage,
    texts: Vec<String>,
    result: Option<(String, bool)>,
}

impl ProgramOutput {
    /// Parses more output, and returns the activities in it.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Activity>, Failure> {
        self.rest.extend_from_slice(bytes);
        let mut activities = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            activities.extend(self.line(&line));
        }
        if self.rest.len() > LONGEST {
            let message = "the command-line agent writes a line that does not end";
            return Err(Failure::new(FailureKind::Crashed, message));
        }
        Ok(activities)
    }

    fn line(&mut self, line: &[u8]) -> Option<Activity> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        let is_object = serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
        let line = match serde_json::from_str::<Line>(text) {
            Ok(line) => line,
            Err(_) if is_object => return None,
            Err(_) => Line::Text { text: text.chars().take(PLAIN).collect() },
        };
        match line {
            Line::Text { text } => {
                self.texts.push(text.clone());
                Some(Activity::Text { text })
            }
            Line::ToolCall { id, tool, input } => Some(Activity::ToolCall { id, tool, input }),
            Line::ToolResult { id, text, is_error } => {
                Some(Activity::ToolResult { id, text, is_error })
            }
            Line::Usage(usage) => {
                self.usage = self.usage.plus(usage);
                Some(Activity::Usage(usage))
            }
            Line::Result { text, is_error } => {
                self.result.get_or_insert((text, is_error));
                None
            }
        }
    }

    /// Returns the answer, when the program has ended with this exit code.
    pub fn finish(
        mut self,
        program: &str,
        exit_code: i32,
        errors: &str,
    ) -> (Vec<Activity>, Result<Reply, Failure>) {
        let rest = std::mem::take(&mut self.rest);
        let last = self.line(&rest).into_iter().collect();
        (last, self.reply(program, exit_code, errors))
    }

    fn reply(self, program: &str, exit_code: i32, errors: &str) -> Result<Reply, Failure> {
        let text = match self.result {
            Some((text, false)) => text,
            Some((text, true)) => return Err(Failure::new(FailureKind::Crashed, text)),
            // It has ended without marking its text as a result.
            None if exit_code == 0 && !self.texts.is_empty() => self.texts.join("\n"),
            None => {
                let said = if errors.trim().is_empty() { "" } else { ": " };
                let errors = errors.trim();
                let message = format!(
                    "{program} ended with status {exit_code}, without a result{said}{errors}"
                );
                return Err(Failure::new(FailureKind::Crashed, message));
            }
        };
        Ok(Reply {
            blocks: vec![Block::Text { text }],
            stop: Stop::Done,
            usage: self.usage,
            model: program.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood_however_they_are_cut() {
        let text = "{\"type\": \"text\", \"text\": \"hé\"}\nplain\n{\"type\": \"news\"}\n\
            {\"type\": \"tool_call\", \"tool\": \"sh\", \"input\": {}}\n\
            {\"type\": \"usage\", \"input_tokens\": 2}\n{\"type\": \"usage\", \"input_tokens\": 3}\n\
            {\"type\": \"result\", \"text\": \"done\"}";
        for at in 0..text.len() {
            let mut account = ProgramOutput::default();
            let mut told = account.push(&text.as_bytes()[..at]).unwrap();
            told.extend(account.push(&text.as_bytes()[at..]).unwrap());
            let (last, reply) = account.finish("agent", 0, "");
            told.extend(last);
            let reply = reply.unwrap();
            assert_eq!((reply.text(), reply.usage.input_tokens), ("done".to_owned(), 5));
            assert_eq!(told.len(), 5, "{told:?}");
            assert_eq!(told[1], Activity::Text { text: "plain".to_owned() });
        }
    }

    #[test]
    fn an_end_without_a_result_is_a_failure_that_says_why() {
        let failure = ProgramOutput::default().finish("agent", 3, "no key\n").1.unwrap_err();
        assert_eq!(failure.message, "agent ended with status 3, without a result: no key");
        let mut said = ProgramOutput::default();
        said.push(b"{\"type\": \"result\", \"text\": \"no\", \"is_error\": true}\n").unwrap();
        assert_eq!(said.finish("agent", 0, "").1.unwrap_err().fault, FailureKind::Crashed);
        let mut endless = ProgramOutput::default();
        assert!(endless.push(&vec![b'x'; LONGEST + 1]).is_err());
    }
}

//! The tools of a model.
//!
//! The `runtime` tool belongs to the gateway and comes from the driver. The file tools are
//! here: their arguments, and how an edit changes a text.

use crate::model::Arguments;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool as it is described to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: Value,
}

/// Returns the file tools, as data.
#[must_use]
pub fn file_tools() -> Vec<Tool> {
    serde_json::from_str(include_str!("tools.json")).expect("tools.json is checked by a test")
}

/// A call of one of [`file_tools`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileCall {
    Read(Read),
    Write(Write),
    Edit(Edit),
    Search(Search),
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    pub path: String,
    /// Counted from 1.
    #[serde(default)]
    pub from_line: Option<u64>,
    #[serde(default)]
    pub lines: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    pub path: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    pub path: String,
    pub old_text: String,
    pub new_text: String,
    #[serde(default)]
    pub replace_all: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// A regular expression.
    pub pattern: String,
    #[serde(default)]
    pub path: Option<String>,
    /// A pattern for file names: `*.py`.
    #[serde(default)]
    pub glob: Option<String>,
}

/// Why a call is not performed. The model reads it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error("there is no tool \"{name}\"; the tools are: {known}")]
    UnknownTool { name: String, known: String },
    #[error("the arguments are not a JSON object: {0}")]
    Malformed(String),
    #[error("wrong arguments for {tool}: {why}")]
    Wrong { tool: String, why: String },
}

/// Returns whether a tool is one of [`file_tools`]. The files show the effects of its calls.
#[must_use]
pub fn is_for_files(tool: &str) -> bool {
    matches!(tool, "read_file" | "write_file" | "edit_file" | "search_files")
}

impl FileCall {
    pub fn parse(tool: &str, input: &Arguments) -> Result<Self, CallError> {
        match tool {
            "read_file" => of(tool, input).map(Self::Read),
            "write_file" => of(tool, input).map(Self::Write),
            "edit_file" => of(tool, input).map(Self::Edit),
            "search_files" => of(tool, input).map(Self::Search),
            _ => {
                let known: Vec<_> = file_tools().into_iter().map(|tool| tool.name).collect();
                Err(CallError::UnknownTool { name: tool.to_owned(), known: known.join(", ") })
            }
        }
    }
}

fn of<T: for<'a> Deserialize<'a>>(tool: &str, input: &Arguments) -> Result<T, CallError> {
    match input {
        Arguments::Json(value) => T::deserialize(value)
            .map_err(|e| CallError::Wrong { tool: tool.to_owned(), why: e.to_string() }),
        Arguments::Malformed(text) => Err(CallError::Malformed(text.chars().take(200).collect())),
    }
}

/// Why an edit does not fit its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("old_text is empty; to make a new file, use write_file")]
    Empty,
    #[error("old_text is not in the file; read the file, and give the text exactly as it is there")]
    Absent,
    #[error(
        "old_text is in the file {0} times; give more of what is around it, or set replace_all"
    )]
    Ambiguous(usize),
    #[error("old_text and new_text are the same; nothing would change")]
    Same,
}

impl Edit {
    pub fn apply(&self, text: &str) -> Result<String, EditError> {
        if self.old_text.is_empty() {
            return Err(EditError::Empty);
        }
        if self.old_text == self.new_text {
            return Err(EditError::Same);
        }
        match text.matches(&self.old_text).count() {
            0 => Err(EditError::Absent),
            1 => Ok(text.replacen(&self.old_text, &self.new_text, 1)),
            _ if self.replace_all => Ok(text.replace(&self.old_text, &self.new_text)),
            count => Err(EditError::Ambiguous(count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str, replace_all: bool) -> Edit {
        let (old_text, new_text) = (old.to_owned(), new.to_owned());
        Edit { path: String::new(), old_text, new_text, replace_all }
    }

    #[test]
    fn the_tools_are_those_that_can_be_called() {
        let names: Vec<_> = file_tools().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["read_file", "write_file", "edit_file", "search_files"]);
        for name in names {
            let answer = FileCall::parse(&name, &Arguments::parse("{\"surprise\": 1}"));
            assert!(matches!(answer, Err(CallError::Wrong { .. })), "{answer:?}");
        }
    }

    #[test]
    fn an_edit_has_to_mean_one_place() {
        assert_eq!(edit("b", "x", false).apply("abc").unwrap(), "axc");
        assert_eq!(edit("b", "x", false).apply("abcb"), Err(EditError::Ambiguous(2)));
        assert_eq!(edit("b", "x", true).apply("abcb").unwrap(), "axcx");
        assert_eq!(edit("z", "x", false).apply("abc"), Err(EditError::Absent));
        assert_eq!(edit("", "x", false).apply("abc"), Err(EditError::Empty));
        assert_eq!(edit("b", "b", false).apply("abc"), Err(EditError::Same));
    }
}

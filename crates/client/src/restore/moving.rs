//! Adapts a saved state to the place where it continues.
//!
//! A shell's state is a text that sets everything. We append lines that set the session id,
//! the environment of this place where the session had not changed it, and the directory.

use serde_json::Value;
use sessile_protocol::{Language, SESSION_MARKER, SessionId};
use sessile_store::SavedKernel;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Variables that a shell sets itself.
const OWN: [&str; 5] = ["PWD", "OLDPWD", "SHLVL", "_", SESSION_MARKER];

/// The earlier and the new place of a session.
#[derive(Debug)]
pub(crate) struct Move<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// The working directory of the session, before and now.
    pub(crate) from: &'a Path,
    pub(crate) to: &'a Path,
    pub(crate) place: DirectoryMapping,
}

/// How directories are mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirectoryMapping {
    /// The same directories, if they exist.
    Same,
    /// The session was put into another directory.
    New,
    /// In a sandbox, as before: its directories are not this system's, and it gets nothing
    /// of this environment.
    Confined,
}

/// Path of the workspace in a sandbox.
const INSIDE: &str = "/workspace";

impl Move<'_> {
    /// Adapts a kernel's state. Returns why its directory is another one, if that was not
    /// requested.
    pub(crate) fn fit(&self, language: Language, saved: &mut SavedKernel) -> Option<String> {
        let before = saved.view.get("working_dir").and_then(Value::as_str).map(PathBuf::from);
        let (now, trouble) = self.directory(before.as_deref());
        saved.view.insert("working_dir".into(), now.display().to_string().into());
        if let Some(text) = &mut saved.restore {
            let lines = self.lines(language, &saved.view, &now);
            text.push_str(&lines);
        }
        trouble
    }

    fn directory(&self, before: Option<&Path>) -> (PathBuf, Option<String>) {
        let Some(before) = before else {
            let to =
                if self.place == DirectoryMapping::Confined { Path::new(INSIDE) } else { self.to };
            return (to.to_owned(), None);
        };
        match self.place {
            // Whether it exists is checked inside the sandbox.
            DirectoryMapping::Confined => (before.to_owned(), None),
            DirectoryMapping::New => {
                let below = before.strip_prefix(self.from).ok().map(|below| self.to.join(below));
                (below.filter(|path| path.is_dir()).unwrap_or_else(|| self.to.to_owned()), None)
            }
            DirectoryMapping::Same if before.is_dir() => (before.to_owned(), None),
            DirectoryMapping::Same => {
                let why = format!("{} is not there", before.display());
                (self.to.to_owned(), Some(why))
            }
        }
    }

    fn lines(
        &self,
        language: Language,
        view: &serde_json::Map<String, Value>,
        directory: &Path,
    ) -> String {
        let (export, cd) = match language {
            Language::Bash => ("\\builtin export", "\\builtin cd --"),
            Language::Zsh => ("\\builtin export", "\\builtin cd -q --"),
            Language::Sh | Language::Python | Language::Node => {
                ("\\command export", "\\command cd --")
            }
        };
        let mut lines = String::from("\n");
        let changed = |name: &str| view.get("env_vars").and_then(|env| env.get(name)).is_some();
        let removed = |name: &str| {
            let list = view.get("env_removed").and_then(Value::as_array);
            list.is_some_and(|list| list.iter().any(|gone| gone.as_str() == Some(name)))
        };
        let environment = match self.place {
            DirectoryMapping::Same | DirectoryMapping::New => Some(self.environment),
            DirectoryMapping::Confined => None,
        };
        for (name, value) in environment.into_iter().flatten() {
            let is_ours = OWN.contains(&name.as_str()) || !is_name(name);
            if !is_ours && !changed(name) && !removed(name) {
                let _ = writeln!(lines, "{export} {name}={}", quoted(value));
            }
        }
        let _ = writeln!(lines, "{export} {SESSION_MARKER}={}", self.session);
        let directory = quoted(&directory.display().to_string());
        let _ = match self.place {
            DirectoryMapping::Same | DirectoryMapping::New => writeln!(lines, "{cd} {directory}"),
            DirectoryMapping::Confined => {
                writeln!(lines, "{cd} {directory} 2>/dev/null || {cd} {INSIDE}")
            }
        };
        lines
    }
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_changed_stays_and_the_rest_is_as_it_is_here() {
        let session = SessionId::from_random([7; 12]);
        let here =
            [("HOME", "/h'ere"), ("STAGE", "here"), ("GONE", "x"), ("PWD", "/x"), ("a-b", "1")];
        let environment = here.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let view = serde_json::json!({
            "working_dir": "/not/there", "env_vars": {"STAGE": "theirs"}, "env_removed": ["GONE"]
        });
        let Value::Object(view) = view else { unreachable!() };
        let mut saved = SavedKernel {
            as_of_run: sessile_protocol::RunNo(1),
            view,
            restore: Some("x=1".into()),
            dump: None,
            dump_as_of_run: None,
        };
        let (from, to) = (Path::new("/old"), Path::new("/"));
        let place = DirectoryMapping::Same;
        let moved = Move { session: &session, environment: &environment, from, to, place };
        let trouble = moved.fit(Language::Bash, &mut saved);
        assert_eq!(trouble.as_deref(), Some("/not/there is not there"));
        let text = saved.restore.unwrap();
        assert!(text.starts_with("x=1\n\\builtin export HOME='/h'\\''ere'\n"), "{text}");
        assert!(text.contains(&format!("SESSILE_SESSION_ID={session}\n")), "{text}");
        assert!(!text.contains("STAGE") && !text.contains("GONE") && !text.contains(" PWD"));
        assert!(text.ends_with("\\builtin cd -- '/'\n"), "{text}");
    }
}

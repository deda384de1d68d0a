//! Files of sessions in the notation of the command line: `ID:path`.

use crate::settings::Settings;
use anyhow::Context;
use sessile_client::Workspace;
use sessile_files::{RelativePath, Root};

/// A path in a session's workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) session: String,
    pub(crate) path: String,
}

impl Place {
    /// Parses `ID:path`. Text with a slash before its first colon is a path of this
    /// machine, as in scp.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (session, path) = text.split_once(':')?;
        let is_session = !session.is_empty() && !session.contains('/');
        is_session.then(|| Self { session: session.to_owned(), path: path.to_owned() })
    }

    /// Parses the same where only a session can be meant: the path may be omitted.
    pub(crate) fn of(text: &str) -> Self {
        let whole = Self { session: text.to_owned(), path: String::new() };
        Self::parse(text).unwrap_or(whole)
    }

    /// Returns the session's files, and the path among them.
    pub(crate) fn open(&self, settings: &Settings) -> anyhow::Result<(Root, RelativePath)> {
        let root = open(settings, &self.session)?;
        let path = root.path(self.path.as_bytes())?;
        Ok((root, path))
    }
}

/// Opens the files of a session's workspace.
fn open(settings: &Settings, session: &str) -> anyhow::Result<Root> {
    let id = settings.session(session)?;
    let metadata = settings.sessions.find(&id)?.metadata()?;
    let workspace = Workspace::of(&metadata)?;
    let root = Root::open(&workspace.path)
        .with_context(|| format!("the workspace of {id} cannot be used"))?;
    Ok(root.called(workspace.called))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_session_and_a_path() {
        let place = |session: &str, path: &str| {
            Some(Place { session: session.to_owned(), path: path.to_owned() })
        };
        assert_eq!(Place::parse("web:src/a"), place("web", "src/a"));
        assert_eq!(Place::parse("@last:"), place("@last", ""));
        assert_eq!(Place::parse("web:a:b"), place("web", "a:b"));
        for text in ["src/a", "./a:b", "/a:b", ":a", "plain"] {
            assert_eq!(Place::parse(text), None, "{text}");
        }
        assert_eq!(Some(Place::of("web")), place("web", ""));
    }
}

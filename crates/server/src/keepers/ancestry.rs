//! The origin of a session.

use sessile_protocol::SessionId;
use sessile_store::{Metadata, Sessions};
use std::collections::HashMap;
use std::path::PathBuf;

/// How many generations of forks are followed: more than anybody makes. Files may also
/// contain a cycle.
const GENERATIONS: usize = 1000;

/// Returns the directory that decides who may use a session. A fork may have its files
/// elsewhere: it is as visible as the session that it comes from, as long as that is known.
pub(crate) fn home(metadata: &Metadata, find: impl Fn(&SessionId) -> Option<Metadata>) -> PathBuf {
    let mut oldest = metadata.clone();
    for _ in 0..GENERATIONS {
        let original = oldest.forked_from.as_ref().and_then(|from| find(&from.session_id));
        match original {
            Some(original) => oldest = original,
            None => break,
        }
    }
    oldest.work_dir
}

/// Returns the same, read from the files.
pub(crate) fn home_on_disk(metadata: &Metadata, sessions: &Sessions) -> PathBuf {
    home(metadata, |id| sessions.find(id).and_then(|directory| directory.metadata()).ok())
}

/// The same for many sessions at once.
#[derive(Debug)]
pub(crate) struct HomeIndex(HashMap<SessionId, Metadata>);

impl HomeIndex {
    pub(crate) fn of<'a>(all: impl Iterator<Item = &'a Metadata>) -> Self {
        Self(all.map(|metadata| (metadata.session_id.clone(), metadata.clone())).collect())
    }

    pub(crate) fn home(&self, metadata: &Metadata) -> PathBuf {
        home(metadata, |id| self.0.get(id).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn session(n: u8, work_dir: &str, from: Option<u8>) -> Metadata {
        let id = |n: u8| SessionId::from_random([n; 12]);
        let mut fields = json!({
            "session_id": id(n), "command": "bash", "created_at": "", "last_executed_at": null,
            "status": "active", "work_dir": work_dir, "execution_count": 0, "language": "bash",
            "idle_timeout_ms": 0, "command_timeout_ms": 0, "max_history": 1, "output_cap": 0,
        });
        if let Some(from) = from {
            fields["forked_from"] = json!({"session_id": id(from), "as_of_run": 1});
        }
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn a_fork_is_at_home_where_its_original_is() {
        let all = [
            session(1, "/mine", None),
            session(2, "/copy", Some(1)),
            session(3, "/copy/of/copy", Some(2)),
            session(4, "/alone", Some(9)),
            session(5, "/round", Some(5)),
        ];
        let homes = HomeIndex::of(all.iter());
        let home = |n: usize| homes.home(&all[n - 1]).display().to_string();
        assert_eq!((home(1), home(2), home(3)), ("/mine".into(), "/mine".into(), "/mine".into()));
        assert_eq!((home(4), home(5)), ("/alone".to_owned(), "/round".to_owned()));
    }
}

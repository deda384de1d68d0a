//! References to a session other than its whole id: its name, the beginning of its id, or `@last`.

use super::{Directory, Result, Sessions, StoreError};
use crate::Claim;
use crate::metadata::{Metadata, SessionStatus, timestamp_of};
use sessile_protocol::SessionId;
use std::os::unix::fs::MetadataExt;

/// Stands for the session that was used last.
pub const LAST: &str = "@last";

/// Minimum number of digits of an id: fewer match a session only by chance.
const FEWEST_DIGITS: usize = 4;

/// Maximum number of sessions that an error lists.
const LISTED: usize = 5;

impl Sessions {
    /// Returns the id of the session with this name or id prefix. Names take precedence
    /// over id prefixes, and live sessions over ended ones.
    ///
    /// # Errors
    /// When no session matches, or several do.
    pub fn resolve(&self, text: &str) -> Result<SessionId> {
        let exact = text.parse::<SessionId>().ok();
        if let Some(id) = exact.filter(|id| self.find(id).is_ok()) {
            return Ok(id);
        }
        choose(text, &self.candidates(text)?, None)
    }

    /// Returns the sessions for [`choose`], newest first.
    ///
    /// # Errors
    /// When the directory exists but cannot be listed.
    pub fn candidates(&self, text: &str) -> Result<Vec<Metadata>> {
        let up_to_date = |(directory, mut metadata): (Directory, Metadata)| {
            if text == LAST {
                let known = metadata.last_executed_at.take();
                metadata.last_executed_at = known.max(directory.last_use());
            }
            metadata
        };
        Ok(self.recorded()?.into_iter().map(up_to_date).collect())
    }

    /// Reserves a name for a session of this owner until the claims are dropped: no other
    /// live session may have it.
    ///
    /// # Errors
    /// When the name is invalid or taken.
    pub fn reserve_name(&self, name: &str, owner: Option<&str>) -> Result<Vec<Claim>> {
        self.reserve_names(&[name.to_owned()], owner)
    }

    /// Reserves several names: all of them, or none.
    ///
    /// # Errors
    /// When one of them is invalid or taken.
    pub fn reserve_names(&self, names: &[String], owner: Option<&str>) -> Result<Vec<Claim>> {
        names.iter().try_for_each(|name| check_name(name))?;
        // In the same order in all processes, so that no two wait for each other.
        let mut names = names.to_vec();
        names.sort();
        let claim =
            |name: &String| self.claim(&format!("name\0{}\0{name}", owner.unwrap_or_default()));
        let claims = names.iter().map(claim).collect::<Result<Vec<Claim>>>()?;
        if names.is_empty() {
            return Ok(claims);
        }
        for (_, found) in self.recorded()? {
            if let Some(name) = names.iter().find(|name| found.is_called(name, owner)) {
                let (name, id) = (name.clone(), found.session_id.to_string());
                return Err(StoreError::NameTaken { name, id });
            }
        }
        Ok(claims)
    }
}

impl Directory {
    /// Returns when a run was last accepted or finished. The metadata of a busy session is
    /// written a little later.
    fn last_use(&self) -> Option<String> {
        let taken_on = std::fs::metadata(self.accepted_path()).ok().map(|found| {
            timestamp_of(found.mtime(), u32::try_from(found.mtime_nsec()).unwrap_or_default())
        });
        let over = self.history().newest(1).pop().map(|entry| entry.timestamp);
        taken_on.max(over)
    }
}

impl Metadata {
    /// Returns whether this is the live session of that name and owner. There is at most one.
    #[must_use]
    pub fn is_called(&self, name: &str, owner: Option<&str>) -> bool {
        is_live(self) && self.name.as_deref() == Some(name) && self.owner.as_deref() == owner
    }
}

/// Checks a name. It must not look like an id.
///
/// # Errors
/// When it is invalid.
pub fn check_name(name: &str) -> Result<()> {
    let is_plain = |c: char| c.is_alphanumeric() || " -_.:/".contains(c);
    let is_good = (1..=100).contains(&name.chars().count())
        && name.chars().all(is_plain)
        && !name.starts_with("sess_");
    if is_good { Ok(()) } else { Err(StoreError::BadName(name.to_owned())) }
}

/// Chooses the session of this name or id prefix from `all`, which is newest first. A
/// client with a token sees the names that were given with this token, and the last session
/// that was started with it. A client without one owns all sessions; by a name it first
/// means one of those without a token.
///
/// # Errors
/// When no session matches, or several do.
pub fn choose(text: &str, all: &[Metadata], owner: Option<&str>) -> Result<SessionId> {
    let is_own = |m: &Metadata| m.owner.as_deref() == owner;
    if text == LAST {
        return last(all.iter().filter(|m| owner.is_none() || is_own(m))).ok_or(StoreError::NoLast);
    }
    let mut named: Vec<&Metadata> =
        all.iter().filter(|m| m.name.as_deref() == Some(text)).collect();
    if owner.is_some() || named.iter().any(|m| is_own(m) && is_live(m)) {
        named.retain(|m| is_own(m));
    }
    let live: Vec<&Metadata> = named.iter().copied().filter(|m| is_live(m)).collect();
    match (live.as_slice(), named.as_slice()) {
        ([one], _) | ([], [one, ..]) => return Ok(one.session_id.clone()),
        ([], []) => {}
        (several, _) => return Err(ambiguous(text, several)),
    }
    let digits = text.strip_prefix("sess_").unwrap_or(text);
    let is_meant = |m: &&Metadata| {
        m.session_id.as_str().strip_prefix("sess_").is_some_and(|id| id.starts_with(digits))
    };
    let found: Vec<&Metadata> = all.iter().filter(is_meant).collect();
    match found.as_slice() {
        [] => Err(StoreError::NotFound(text.to_owned())),
        [..] if digits.is_empty() => Err(StoreError::NotFound(text.to_owned())),
        [..] if digits.len() < FEWEST_DIGITS => Err(StoreError::TooShort(text.to_owned())),
        [one] => Ok(one.session_id.clone()),
        several => Err(ambiguous(text, several)),
    }
}

/// Returns the live session that was used last, or else the ended one.
fn last<'a>(all: impl Iterator<Item = &'a Metadata>) -> Option<SessionId> {
    let used = |m: &&Metadata| {
        let at = m.last_executed_at.as_ref().unwrap_or(&m.created_at).clone();
        (is_live(m), at.max(m.created_at.clone()), m.session_id.as_str().to_owned())
    };
    all.max_by_key(used).map(|m| m.session_id.clone())
}

fn is_live(metadata: &Metadata) -> bool {
    metadata.status != SessionStatus::Terminated
}

fn ambiguous(text: &str, several: &[&Metadata]) -> StoreError {
    let mut ids: Vec<String> =
        several.iter().take(LISTED).map(|m| m.session_id.to_string()).collect();
    if several.len() > LISTED {
        ids.push(format!("{} more", several.len() - LISTED));
    }
    StoreError::Ambiguous { text: text.to_owned(), candidates: ids.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, name: Option<&str>, status: SessionStatus, used: u32) -> Metadata {
        let text = serde_json::json!({
            "session_id": id, "command": "bash", "created_at": "2026-01-01T00:00:00Z",
            "last_executed_at": format!("2026-01-01T00:00:{used:02}Z"), "status": status,
            "work_dir": "/", "execution_count": 0, "language": "bash", "idle_timeout_ms": 0,
            "command_timeout_ms": 0, "max_history": 1, "output_cap": 1, "name": name,
        });
        serde_json::from_value(text).unwrap()
    }

    fn called(text: &str, all: &[Metadata]) -> String {
        choose(text, all, None).map_or_else(|error| error.to_string(), |id| id.to_string())
    }

    #[test]
    fn a_session_is_found_by_name_beginning_and_last_use() {
        let all = [
            session("sess_abcd01", Some("web"), SessionStatus::Terminated, 9),
            session("sess_abcd02", Some("web"), SessionStatus::Active, 3),
            session("sess_beef03", Some("abcd"), SessionStatus::Lost, 5),
            session("sess_cafe04", Some("old"), SessionStatus::Terminated, 1),
        ];
        assert_eq!(called("web", &all), "sess_abcd02", "the live one");
        assert_eq!(called("old", &all), "sess_cafe04");
        assert_eq!(called("abcd", &all), "sess_beef03", "a name comes first");
        assert_eq!(called("sess_abcd02", &all), "sess_abcd02");
        assert_eq!(called("cafe", &all), "sess_cafe04");
        assert_eq!(called("sess_cafe", &all), "sess_cafe04");
        assert_eq!(called("@last", &all), "sess_beef03");
        assert_eq!(called("@last", &all[3..]), "sess_cafe04");
        assert!(called("@last", &[]).contains("no session yet"));
        for short in ["c", "caf", "sess_caf", "abc"] {
            let told = called(short, &all);
            assert!(told.contains("at least 4 digits"), "{short}: {told}");
        }
        for unknown in ["", "sess_", "fff", "ffff"] {
            assert_eq!(called(unknown, &all), format!("Session {unknown} not found"));
        }
        let many = called("sess_abcd", &all);
        assert!(many.contains("sess_abcd01, sess_abcd02"), "{many}");
    }

    #[test]
    fn two_live_sessions_of_one_name_are_told_apart_by_their_ids() {
        let all = [
            session("sess_0001", Some("web"), SessionStatus::Active, 1),
            session("sess_0002", Some("web"), SessionStatus::Active, 2),
        ];
        assert!(called("web", &all).contains("sess_0001, sess_0002"));
    }

    #[test]
    fn a_token_knows_the_names_that_were_given_with_it() {
        let of = |id: &str, owner: Option<&str>, used: u32| Metadata {
            owner: owner.map(str::to_owned),
            ..session(id, Some("web"), SessionStatus::Active, used)
        };
        let all = [of("sess_0001", Some("a"), 9), of("sess_0002", None, 2)];
        let chosen = |text: &str, owner: Option<&str>| {
            choose(text, &all, owner).map_or_else(|error| error.to_string(), |id| id.to_string())
        };
        assert_eq!(chosen("web", Some("a")), "sess_0001");
        assert_eq!(chosen("web", None), "sess_0002", "one of his own first");
        assert_eq!(chosen("web", Some("b")), "Session web not found");
        assert_eq!(chosen("0002", Some("b")), "sess_0002", "ids are nobody's");
        assert_eq!(chosen("@last", Some("a")), "sess_0001");
        assert_eq!(chosen("@last", None), "sess_0001", "the owner may use them all");
        assert!(chosen("@last", Some("b")).contains("no session yet"));
        assert_eq!(choose("web", &all[..1], None).unwrap().as_str(), "sess_0001");
    }
}

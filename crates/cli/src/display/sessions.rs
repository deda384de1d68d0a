//! Lists of sessions.

use super::table::{Cell, Column, table};
use super::words::{age, on_one_line};
use super::{Colour, Page};
use jiff::Timestamp;
use sessile_store::{Metadata, SessionStatus};
use std::path::Path;

/// How many digits of an id are shown where there is no room for all.
const DIGITS: usize = 8;

pub(crate) fn list(
    sessions: &[Metadata],
    home: Option<&Path>,
    now: Timestamp,
    page: Page,
) -> String {
    if sessions.is_empty() {
        return "No sessions. Start one with: sessile start\n".to_owned();
    }
    let has = |is_so: fn(&Metadata) -> bool| sessions.iter().any(is_so);
    let (has_names, has_keys) = (has(|m| m.name.is_some()), has(|m| key(m).is_some()));
    let has_forks = has(|m| m.forked_from.is_some());
    let is_narrow = page.width < 100;
    let mut columns = vec![Column::whole("SESSION")];
    columns.extend(has_names.then(|| Column::cut("NAME", 8)));
    columns.extend(has_keys.then(|| Column::cut("KEY", 7).optional(1)));
    columns.extend([
        Column::whole("STATUS"),
        Column::cut("SHELL", 4).optional(4),
        Column::number("RUNS").optional(3),
        Column::whole("USED").optional(2),
        Column::cut("DIRECTORY", 12).optional(5),
    ]);
    columns.extend(has_forks.then(|| Column::whole("FORK OF").optional(6)));
    let ids: Vec<&str> = sessions.iter().map(|m| m.session_id.as_str()).collect();
    let row = |m: &Metadata| {
        let id = |id: &str| if is_narrow { short(id, &ids) } else { id.to_owned() };
        let mut row: Vec<Cell> = vec![id(m.session_id.as_str()).into()];
        let or_dash = |text: Option<&str>| on_one_line(text.unwrap_or("-"));
        row.extend(has_names.then(|| or_dash(m.name.as_deref()).into()));
        row.extend(has_keys.then(|| or_dash(key(m)).into()));
        row.extend([
            Cell::painted(m.status.as_str(), colour(m.status)),
            on_one_line(&m.command).into(),
            m.execution_count.to_string().into(),
            age(m.last_executed_at.as_ref().unwrap_or(&m.created_at), now).into(),
            on_one_line(&place(&m.work_dir, home)).into(),
        ]);
        row.extend(has_forks.then(|| {
            let origin = m.forked_from.as_ref();
            origin.map_or("-".to_owned(), |from| id(from.session_id.as_str())).into()
        }));
        row
    };
    table(&columns, &sessions.iter().map(row).collect::<Vec<_>>(), page)
}

/// Returns the key of a workspace's own session.
fn key(metadata: &Metadata) -> Option<&str> {
    metadata.workspace.as_ref().map(|_| metadata.session_key.as_deref().unwrap_or("default"))
}

fn colour(status: SessionStatus) -> Colour {
    match status {
        SessionStatus::Active => Colour::Green,
        SessionStatus::Starting => Colour::Yellow,
        SessionStatus::Lost | SessionStatus::Unknown => Colour::Red,
        SessionStatus::Terminated => Colour::Dim,
    }
}

/// The beginning of an id, which names the session as well.
pub(super) fn short(id: &str, all: &[&str]) -> String {
    let is_clear = |n: &usize| all.iter().filter(|it| it.starts_with(&id[..*n])).count() <= 1;
    let least = ("sess_".len() + DIGITS).min(id.len());
    let length = (least..id.len()).find(is_clear).unwrap_or(id.len());
    id[..length].to_owned()
}

pub(super) fn place(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Paint;
    use super::super::words::width;
    use super::*;

    fn session(id: &str, name: Option<&str>, status: SessionStatus) -> Metadata {
        let text = serde_json::json!({
            "session_id": id, "command": "bash", "created_at": "2026-01-01T00:00:00Z",
            "last_executed_at": "2026-01-01T11:00:00Z", "status": status,
            "work_dir": "/home/me/project", "execution_count": 12, "language": "bash",
            "idle_timeout_ms": 0, "command_timeout_ms": 0, "max_history": 1, "output_cap": 1,
            "name": name, "workspace": name.map(|_| "w"), "session_key": name.map(|_| "main"),
        });
        serde_json::from_value(text).unwrap()
    }

    fn shown(width: usize) -> String {
        let sessions = [
            session("sess_0123456789abcdef01234567", Some("web 日本"), SessionStatus::Active),
            session("sess_0123456789cdef0123456789", None, SessionStatus::Terminated),
        ];
        let now = "2026-01-01T12:00:00Z".parse().unwrap();
        list(&sessions, Some(Path::new("/home/me")), now, Page { width, paint: Paint::Plain })
    }

    #[test]
    fn a_wide_terminal_shows_whole_ids_and_all_columns() {
        let text = "\
SESSION                        NAME      KEY   STATUS      SHELL  RUNS  USED    DIRECTORY
sess_0123456789abcdef01234567  web 日本  main  active      bash     12  1h ago  ~/project
sess_0123456789cdef0123456789  -         -     terminated  bash     12  1h ago  ~/project
";
        assert_eq!(shown(200), text);
    }

    #[test]
    fn a_narrow_one_shows_the_beginning_of_ids_that_tells_them_apart() {
        let text = "\
SESSION           NAME      KEY   STATUS      SHELL  RUNS  USED    DIRECTORY
sess_0123456789a  web 日本  main  active      bash     12  1h ago  ~/project
sess_0123456789c  -         -     terminated  bash     12  1h ago  ~/project
";
        assert_eq!(shown(80), text);
        let text = "\
SESSION           NAME      STATUS
sess_0123456789a  web 日本  active
sess_0123456789c  -         terminated
";
        assert_eq!(shown(40), text);
        assert!(shown(20).lines().all(|line| width(line) <= 20));
    }
}

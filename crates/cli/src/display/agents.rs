//! A list of agents.

use super::sessions::{place, short};
use super::table::{Cell, Column, table};
use super::words::{age, on_one_line};
use super::{Colour, Page};
use jiff::Timestamp;
use serde::Deserialize;
use std::path::Path;

/// What a server says of an agent.
#[derive(Debug, Deserialize)]
pub(crate) struct AgentRow {
    session_id: String,
    status: String,
    model: String,
    task_count: u64,
    last_activity_ms: i64,
    workspace: String,
}

pub(crate) fn list(agents: &[AgentRow], home: Option<&Path>, now: Timestamp, page: Page) -> String {
    if agents.is_empty() {
        return "No agents. Make one with: sessile agent run 'TASK'\n".to_owned();
    }
    let columns = [
        Column::whole("AGENT"),
        Column::whole("STATUS"),
        Column::cut("MODEL", 8).optional(2),
        Column::number("TASKS").optional(3),
        Column::whole("USED").optional(1),
        Column::cut("WORKSPACE", 12).optional(4),
    ];
    let is_narrow = page.width < 100;
    let ids: Vec<&str> = agents.iter().map(|agent| agent.session_id.as_str()).collect();
    let row = |agent: &AgentRow| -> Vec<Cell> {
        let id = &agent.session_id;
        let used = Timestamp::from_millisecond(agent.last_activity_ms);
        vec![
            if is_narrow { short(id, &ids) } else { id.clone() }.into(),
            Cell::painted(on_one_line(&agent.status.replace('_', " ")), colour(&agent.status)),
            on_one_line(&agent.model).into(),
            agent.task_count.to_string().into(),
            used.map_or("-".to_owned(), |used| age(&used.to_string(), now)).into(),
            on_one_line(&place(Path::new(&agent.workspace), home)).into(),
        ]
    };
    table(&columns, &agents.iter().map(row).collect::<Vec<_>>(), page)
}

fn colour(status: &str) -> Colour {
    match status {
        "running" => Colour::Green,
        "waiting_for_approval" => Colour::Yellow,
        "ended" | "moved" => Colour::Dim,
        _ => Colour::Cyan,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Paint;
    use super::*;
    use serde_json::json;

    fn shown(width: usize) -> String {
        let agents = json!([
            { "session_id": "sess_0123456789abcdef01234567", "status": "waiting_for_approval",
              "model": "main", "task_count": 12, "last_activity_ms": 1_767_265_200_000_i64,
              "workspace": "/home/me/project" },
            { "session_id": "sess_89abcdef0123456789abcdef", "status": "idle", "model": "main",
              "task_count": 1, "last_activity_ms": 1_767_178_800_000_i64, "workspace": "/srv" },
        ]);
        let agents: Vec<AgentRow> = serde_json::from_value(agents).unwrap();
        let now = "2026-01-01T12:00:00Z".parse().unwrap();
        list(&agents, Some(Path::new("/home/me")), now, Page { width, paint: Paint::Plain })
    }

    #[test]
    fn a_wide_terminal_shows_whole_ids_and_all_columns() {
        let text = "\
AGENT                          STATUS                MODEL  TASKS  USED    WORKSPACE
sess_0123456789abcdef01234567  waiting for approval  main      12  1h ago  ~/project
sess_89abcdef0123456789abcdef  idle                  main       1  1d ago  /srv
";
        assert_eq!(shown(120), text);
    }

    #[test]
    fn a_narrow_terminal_shows_what_an_agent_is_named_by_and_how_it_is() {
        let text = "\
AGENT          STATUS                USED
sess_01234567  waiting for approval  1h ago
sess_89abcdef  idle                  1d ago
";
        assert_eq!(shown(44), text);
    }
}

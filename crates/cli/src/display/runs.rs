//! Lists of runs, finished or not.

use super::table::{Cell, Column, table};
use super::words::{age, on_one_line, took};
use super::{Colour, Page};
use jiff::Timestamp;
use sessile_gateway::answer::RunRow;
use sessile_protocol::RunPhase;

pub(crate) fn list(rows: &[RunRow], now: Timestamp, page: Page) -> String {
    if rows.is_empty() {
        return "No runs. Run something with: sessile exec ID -- COMMAND\n".to_owned();
    }
    let columns = [
        Column::number("RUN"),
        Column::whole("STATE"),
        Column::number("TOOK").optional(1),
        Column::whole("STARTED").optional(3),
        Column::whole("LANGUAGE").optional(2),
        Column::cut("COMMAND", 10),
    ];
    let row = |row: &RunRow| {
        let (state, colour) = state(row);
        let since = row.timestamp.as_deref().map(|then| age(then, now));
        vec![
            row.run.to_string().into(),
            Cell::painted(state, colour),
            row.duration_ms.map(|ms| took(ms * 1000)).unwrap_or_default().into(),
            since.unwrap_or_default().into(),
            row.language.as_str().into(),
            on_one_line(&row.command).into(),
        ]
    };
    table(&columns, &rows.iter().map(row).collect::<Vec<_>>(), page)
}

fn state(row: &RunRow) -> (String, Colour) {
    if let Some(event) = &row.event {
        return (event.clone(), Colour::Cyan);
    }
    match (row.exit_code, row.phase) {
        (Some(_), _) if row.timed_out => ("timed out".to_owned(), Colour::Red),
        (Some(_), _) if row.interrupted => ("interrupted".to_owned(), Colour::Red),
        // Its background processes may still write.
        (Some(0), RunPhase::Exited) => ("exit 0, open".to_owned(), Colour::Green),
        (Some(0), _) => ("exit 0".to_owned(), Colour::Green),
        (Some(code), _) => (format!("exit {code}"), Colour::Red),
        (None, RunPhase::Queued) => (waiting(row), Colour::Yellow),
        (None, _) if row.waiting_for_input => ("needs input".to_owned(), Colour::Yellow),
        (None, _) => ("running".to_owned(), Colour::Cyan),
    }
}

fn waiting(row: &RunRow) -> String {
    let place = row.queued.as_ref().map(|queued| (queued.place, &queued.behind));
    match place {
        Some((place, Some(behind))) => format!("queued {place}, behind {}", behind.run),
        Some((place, None)) => format!("queued {place}"),
        None => "queued".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Paint;
    use super::*;
    use sessile_protocol::{Behind, Queued, RunNo};
    use sessile_store::Entry;

    fn finished(run: u64, command: &str, exit_code: i32) -> RunRow {
        let entry: Entry = serde_json::from_value(serde_json::json!({
            "run": run, "timestamp": "2026-01-01T11:58:00Z", "command": command,
            "language": "bash", "exit_code": exit_code, "duration_ms": 1234, "kernel": "kept",
        }))
        .unwrap();
        (&entry).into()
    }

    fn rows() -> Vec<RunRow> {
        let going = RunRow {
            exit_code: None,
            duration_ms: None,
            phase: RunPhase::Running,
            ..finished(12, "make test\necho \x1b[31mred", 0)
        };
        let long = "printf '%s\\n' one two three four five six seven eight nine ten eleven";
        vec![finished(1, "echo 日本語", 0), finished(2, long, 7), going]
    }

    fn shown(width: usize) -> String {
        let now = "2026-01-01T12:00:00Z".parse().unwrap();
        list(&rows(), now, Page { width, paint: Paint::Plain })
    }

    #[test]
    fn runs_fit_the_terminal() {
        assert_eq!(
            shown(200),
            "\
RUN  STATE     TOOK  STARTED  LANGUAGE  COMMAND
  1  exit 0   1.2 s  2m ago   bash      echo 日本語
  2  exit 7   1.2 s  2m ago   bash      printf '%s\\n' one two three four five six seven eight nine ten eleven
 12  running         2m ago   bash      make test ↵ echo  [31mred
"
        );
        assert_eq!(
            shown(80),
            "\
RUN  STATE     TOOK  STARTED  LANGUAGE  COMMAND
  1  exit 0   1.2 s  2m ago   bash      echo 日本語
  2  exit 7   1.2 s  2m ago   bash      printf '%s\\n' one two three four five s…
 12  running         2m ago   bash      make test ↵ echo  [31mred
"
        );
        assert_eq!(
            shown(40),
            "\
RUN  STATE     TOOK  COMMAND
  1  exit 0   1.2 s  echo 日本語
  2  exit 7   1.2 s  printf '%s\\n' one …
 12  running         make test ↵ echo  …
"
        );
    }

    #[test]
    fn every_state_has_its_words() {
        let of = |change: fn(&mut RunRow)| {
            let mut row = finished(1, "x", 0);
            change(&mut row);
            state(&row).0
        };
        assert_eq!(of(|row| row.timed_out = true), "timed out");
        assert_eq!(of(|row| row.interrupted = true), "interrupted");
        assert_eq!(of(|row| row.phase = RunPhase::Exited), "exit 0, open");
        assert_eq!(of(|row| row.event = Some("rewind".to_owned())), "rewind");
        let of_open = |phase, waiting_for_input| {
            let row = finished(1, "x", 0);
            state(&RunRow { exit_code: None, phase, waiting_for_input, ..row }).0
        };
        assert_eq!(of_open(RunPhase::Queued, false), "queued");
        let behind = Some(Behind { run: RunNo(7), command: "make".to_owned() });
        let row = RunRow {
            exit_code: None,
            phase: RunPhase::Queued,
            queued: Some(Queued { place: 2, behind }),
            ..finished(9, "x", 0)
        };
        assert_eq!(state(&row).0, "queued 2, behind 7");
        assert_eq!(of_open(RunPhase::Running, false), "running");
        assert_eq!(of_open(RunPhase::Running, true), "needs input");
    }
}

//! Checkpoints of a session.

use super::Page;
use super::table::{Cell, Column, table};
use super::words::{age, on_one_line};
use jiff::Timestamp;
use sessile_protocol::CheckpointView;

pub(crate) fn list(checkpoints: &[CheckpointView], now: Timestamp, page: Page) -> String {
    if checkpoints.is_empty() {
        return "No checkpoints.\n".to_owned();
    }
    let columns = [
        Column::cut("NAME", 10),
        Column::whole("TAKEN").optional(1),
        Column::number("AFTER RUN"),
        Column::cut("KERNELS", 8).optional(2),
        Column::number("FILES").optional(3),
    ];
    let row = |point: &CheckpointView| -> Vec<Cell> {
        let kernels: Vec<&str> = point.kernels.iter().map(|k| k.language.as_str()).collect();
        let files = point.files.as_ref().map_or("-".to_owned(), |files| files.files.to_string());
        vec![
            on_one_line(&point.name).into(),
            age(&point.created_at, now).into(),
            point.as_of_run.to_string().into(),
            kernels.join(", ").into(),
            files.into(),
        ]
    };
    table(&columns, &checkpoints.iter().map(row).collect::<Vec<_>>(), page)
}

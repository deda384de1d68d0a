//! Files of a workspace.

use super::table::{Cell, Column, table};
use super::words::on_one_line;
use super::{Colour, Page};
use sessile_gateway::answer::{FileEntry, FileType};

pub(crate) fn list(entries: &[FileEntry], page: Page) -> String {
    if entries.is_empty() {
        return "The directory is empty.\n".to_owned();
    }
    let columns = [
        Column::whole("MODE").optional(1),
        Column::number("SIZE"),
        Column::whole("MODIFIED").optional(2),
        Column::cut("PATH", 10),
    ];
    let row = |entry: &FileEntry| -> Vec<Cell> {
        let path = on_one_line(&entry.path);
        let path = match entry.kind {
            FileType::Directory => Cell::painted(format!("{path}/"), Colour::Cyan),
            FileType::Symlink => {
                format!("{path} -> {}", on_one_line(entry.target.as_deref().unwrap_or_default()))
                    .into()
            }
            FileType::File | FileType::Other => path.into(),
        };
        vec![
            entry.mode.clone().into(),
            entry.size.to_string().into(),
            entry.modified.get(..19).unwrap_or(&entry.modified).replace('T', " ").into(),
            path,
        ]
    };
    table(&columns, &entries.iter().map(row).collect::<Vec<_>>(), page)
}

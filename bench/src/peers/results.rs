//! Results, kept in a file.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Results {
    /// The day of the last part.
    pub(super) day: String,
    /// Each peer with its version.
    names: BTreeMap<String, String>,
    /// By row and peer.
    cells: BTreeMap<String, BTreeMap<String, Cell>>,
    /// The results of the hard cases, by case and peer.
    cases: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Cell {
    Value(f64),
    /// Why there is no value.
    Missing(String),
}

impl Results {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(serde_json::from_str(&text)?),
            Err(_) => Ok(Self::default()),
        }
    }

    pub(super) fn write(&mut self, path: &Path) -> anyhow::Result<()> {
        self.day = crate::page::day();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        Ok(std::fs::write(path, serde_json::to_string_pretty(self)?)?)
    }

    pub(super) fn name(&mut self, peer: &str, name: &str) {
        self.names.insert(peer.to_owned(), name.to_owned());
    }

    pub(super) fn name_of(&self, peer: &str) -> &str {
        self.names.get(peer).map_or("", String::as_str)
    }

    pub(super) fn set(&mut self, row: &str, peer: &str, cell: Cell) {
        println!("  {row:12} {peer:24} {cell:?}");
        self.cells.entry(row.to_owned()).or_default().insert(peer.to_owned(), cell);
    }

    pub(super) fn get(&self, row: &str, peer: &str) -> Option<&Cell> {
        self.cells.get(row)?.get(peer)
    }

    pub(super) fn value(&self, row: &str, peer: &str) -> Option<f64> {
        match self.get(row, peer)? {
            Cell::Value(value) => Some(*value),
            Cell::Missing(_) => None,
        }
    }

    pub(super) fn set_case(&mut self, case: &str, peer: &str, verdict: &str) {
        println!("  {case:24} {peer:24} {verdict}");
        self.cases.entry(case.to_owned()).or_default().insert(peer.to_owned(), verdict.to_owned());
    }

    pub(super) fn case(&self, case: &str, peer: &str) -> Option<&str> {
        self.cases.get(case)?.get(peer).map(String::as_str)
    }
}

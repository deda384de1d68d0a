//! Arrays of tables in a configuration file, such as `[[pool]]`: parsed one by one, with
//! distinct names. Errors have the line.

use super::file::line_of;
use anyhow::{Context, bail, ensure};
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::DeValue;

/// What one table becomes, collected key by key.
pub(super) trait Fields: Default {
    /// The key of the tables in the file.
    const KEY: &'static str;
    type Parsed;

    /// Takes a key. Paths are relative to the directory of the file at `path`.
    fn take(&mut self, key: &str, value: &DeValue<'_>, path: &Path) -> anyhow::Result<()>;
    fn whole(self) -> anyhow::Result<Self::Parsed>;
    fn name(whole: &Self::Parsed) -> &str;
}

/// Parses all tables of a file.
pub(super) fn read<F: Fields>(
    value: &Spanned<DeValue<'_>>,
    path: &Path,
    text: &str,
) -> anyhow::Result<Vec<F::Parsed>> {
    let (key, shown) = (F::KEY, path.display());
    let at = |span: Range<usize>| format!("{shown} line {}: {key}", line_of(text, span.start));
    let Some(items) = value.get_ref().as_array() else {
        bail!("{}: write it as [[{key}]], once for each", at(value.span()));
    };
    let mut read: Vec<F::Parsed> = Vec::new();
    for item in items.iter() {
        let Some(table) = item.get_ref().as_table() else {
            bail!("{}: write it as [[{key}]], once for each", at(item.span()));
        };
        let mut fields = F::default();
        for (key, value) in table {
            let place = || format!("{}: {}", at(key.span()), key.get_ref());
            fields.take(key.get_ref(), value.get_ref(), path).with_context(place)?;
        }
        let whole = fields.whole().with_context(|| at(item.span()))?;
        let name = F::name(&whole);
        let is_twice = read.iter().any(|other| F::name(other) == name);
        ensure!(!is_twice, "{}: there are two called {name:?}", at(item.span()));
        read.push(whole);
    }
    Ok(read)
}

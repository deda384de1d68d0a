//! The parts of a documentation page that the bench writes.

use anyhow::Context;
use std::path::Path;

/// Replaces the text between two comments with this name.
pub(crate) fn replace(page: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let old = std::fs::read_to_string(page).with_context(|| page.display().to_string())?;
    let new = replaced(&old, name, text)
        .with_context(|| format!("{} has no place for {name}", page.display()))?;
    Ok(std::fs::write(page, new)?)
}

fn replaced(page: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name}: begin"), format!("<!-- {name}: end -->"));
    let (before, rest) = page.split_once(&begin)?;
    let (comment, rest) = rest.split_once("-->\n")?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{comment}-->\n{text}{end}{after}"))
}

/// Returns today's date in the page's format.
pub(crate) fn day() -> String {
    sessile_store::timestamp().split('T').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn what_lies_between_the_comments_is_replaced_and_nothing_else() {
        let page = "a\n<!-- x: begin, by hand -->\nold\n<!-- x: end -->\nb\n";
        let new = "a\n<!-- x: begin, by hand -->\nnew\n<!-- x: end -->\nb\n";
        assert_eq!(replaced(page, "x", "new\n").as_deref(), Some(new));
        assert_eq!(replaced(new, "x", "new\n").as_deref(), Some(new));
        assert_eq!(replaced(page, "y", "new\n"), None);
    }
}

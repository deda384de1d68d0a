//! Sizes in a policy file, with units: `memory_bytes = "1GiB"`.

use sessile_protocol::parse_size;
use std::ops::Range;

/// The limits that are sizes.
const SIZES: &[&str] = &["memory_bytes", "layer_bytes"];

/// Replaces these sizes by numbers. Each stays on its line, so that later errors have the
/// right line.
///
/// # Errors
/// Where one is not a size.
pub(super) fn in_bytes(text: &str) -> Result<String, (Range<usize>, String)> {
    // The caller reports what is not TOML.
    let Ok(table) = toml::de::DeTable::parse(text) else { return Ok(text.to_owned()) };
    let limits = table.get_ref().get("limits").and_then(|limits| limits.get_ref().as_table());
    let mut found = Vec::new();
    for name in SIZES {
        let Some(value) = limits.and_then(|limits| limits.get(*name)) else { continue };
        let Some(written) = value.get_ref().as_str() else { continue };
        let bytes = parse_size(written)
            .map_err(|error| (value.span(), format!("limits.{name}: {error}")))?;
        found.push((value.span(), bytes));
    }
    found.sort_by_key(|(at, _)| at.start);
    let mut plain = text.to_owned();
    for (at, bytes) in found.into_iter().rev() {
        let lines = "\n".repeat(text[at.clone()].matches('\n').count());
        plain.replace_range(at, &format!("{bytes}{lines}"));
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_become_numbers_and_lines_stay() {
        let text = "extends = \"read-only\"\n[limits]\nlayer_bytes = '2 GiB'\nmemory_bytes = \"512M\" # half\npids = 9\n";
        let plain = in_bytes(text).unwrap();
        assert_eq!(
            plain,
            "extends = \"read-only\"\n[limits]\nlayer_bytes = 2147483648\nmemory_bytes = 536870912 # half\npids = 9\n"
        );
        for same in
            ["[limits]\nmemory_bytes = 1", "limits = { memory_bytes = 3 }", "[limits", "limits = 4"]
        {
            assert_eq!(in_bytes(same).unwrap(), same);
        }
        assert_eq!(
            in_bytes("limits = { memory_bytes = \"1K\" }").unwrap(),
            "limits = { memory_bytes = 1024 }"
        );
        let (_, reason) = in_bytes("[limits]\nmemory_bytes = \"much\"").unwrap_err();
        assert!(reason.contains("limits.memory_bytes") && reason.contains("1GiB"), "{reason}");
    }
}

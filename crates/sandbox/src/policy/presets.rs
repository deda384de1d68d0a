//! The presets: data files in `presets/`, compiled in.

use super::{Draft, Policy, PolicyError};

/// Each preset with its text, from the strictest to the most open.
pub const PRESETS: [(&str, &str); 5] = [
    ("view-only", include_str!("../../presets/view-only.toml")),
    ("read-only", include_str!("../../presets/read-only.toml")),
    ("agent-safe", include_str!("../../presets/agent-safe.toml")),
    ("development", include_str!("../../presets/development.toml")),
    ("full-access", include_str!("../../presets/full-access.toml")),
];

/// Returns the policy of a preset.
///
/// # Errors
/// When there is no such preset.
pub fn preset(name: &str) -> Result<Policy, PolicyError> {
    let (name, text) = PRESETS
        .into_iter()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| PolicyError::UnknownPreset { name: name.to_owned() })?;
    let draft = Draft::from_toml(&format!("presets/{name}.toml"), text)?;
    Ok(draft.onto(Policy { preset: Some(name.to_owned()), ..Policy::empty() }))
}

//! Mistakes in a policy.

/// What is wrong with a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// In a file, with the line.
    #[error("{file}:{line}: {reason}")]
    Line { file: String, line: usize, reason: String },
    /// In JSON, with the field.
    #[error("sandbox{}{field}: {reason}", if field.is_empty() { "" } else { "." })]
    Field { field: String, reason: String },
    #[error("--allow {text:?}: {reason}")]
    Allow { text: String, reason: String },
    #[error("--bind {text:?}: {reason}")]
    Bind { text: String, reason: &'static str },
    #[error("there is no preset {name:?}; there are {}", super::PRESETS.map(|p| p.0).join(", "))]
    UnknownPreset { name: String },
}

impl PolicyError {
    pub(crate) fn field(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Field { field: field.into(), reason: reason.into() }
    }
}

//! A policy as somebody wrote it: parsed strictly, then resolved onto what it extends.

use sessile_protocol::wording::reworded;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::{Bind, FileMode, Limits, Network, Policy, PolicyError, Rule, preset, sizes};

/// What a policy extends by default.
pub const DEFAULT_PRESET: &str = "development";

/// A policy as it was written: what is missing comes from what it extends.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = NewPolicy))]
pub struct Draft {
    /// The preset that this one adds to; `development` when absent.
    #[serde(default, alias = "extends")]
    #[cfg_attr(feature = "schema", schema(nullable, value_type = Option<PresetName>))]
    pub preset: Option<String>,
    /// Where writes to the workspace go.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(nullable))]
    pub files: Option<FileMode>,
    /// Which level a path of the workspace has.
    #[serde(default)]
    pub permissions: Vec<Rule>,
    /// Which hosts can be reached.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(nullable))]
    pub network: Option<Network>,
    /// What may be used of the machine.
    #[serde(default)]
    pub limits: Limits,
    /// Directories of the host beside the workspace.
    #[serde(default)]
    pub binds: Vec<Bind>,
    /// Another system tree than the host's.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(nullable, value_type = Option<String>, pattern = r"^/[^\u0000]*$"))]
    pub rootfs: Option<PathBuf>,
    /// Root of its own user namespace inside, instead of `agent`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(nullable))]
    pub root: Option<bool>,
}

/// The presets, as the API describes them.
#[cfg(feature = "schema")]
#[derive(Debug, utoipa::ToSchema)]
#[schema(rename_all = "kebab-case")]
pub enum PresetName {
    ViewOnly,
    ReadOnly,
    AgentSafe,
    Development,
    FullAccess,
}

impl Draft {
    /// Returns a draft with nothing but a preset's name.
    #[must_use]
    pub fn of_preset(name: &str) -> Self {
        Self { preset: Some(name.to_owned()), ..Self::default() }
    }

    /// Parses a `policy.toml`; `file` is its name in errors.
    ///
    /// # Errors
    /// With the line of the mistake.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, PolicyError> {
        let wrong = |at: Option<std::ops::Range<usize>>, reason: &str| PolicyError::Line {
            file: file.to_owned(),
            line: at.map_or(1, |at| line(text, &at)),
            reason: reason.lines().collect::<Vec<_>>().join("; "),
        };
        let plain = sizes::in_bytes(text).map_err(|(at, reason)| wrong(Some(at), &reason))?;
        let text = plain.as_str();
        let draft: Self = toml::from_str(text)
            .map_err(|error| wrong(error.span(), &reworded(error.message())))?;
        draft.check().map_err(|error| match error {
            PolicyError::Field { field, reason } => {
                wrong(find(text, &field), &format!("{field}: {reason}"))
            }
            PolicyError::UnknownPreset { .. } => wrong(find(text, "extends"), &error.to_string()),
            PolicyError::Line { .. } | PolicyError::Allow { .. } | PolicyError::Bind { .. } => {
                error
            }
        })?;
        Ok(draft)
    }

    /// Parses the `sandbox` of a request: `true`, a preset's name, or an object. `false`
    /// and null mean no sandbox.
    ///
    /// # Errors
    /// With the wrong field.
    pub fn from_json(value: &Value) -> Result<Option<Self>, PolicyError> {
        let draft = match value {
            Value::Null | Value::Bool(false) => return Ok(None),
            Value::Bool(true) => Self::default(),
            Value::String(name) => Self::of_preset(name),
            Value::Object(_) => serde_path_to_error::deserialize(value).map_err(|error| {
                let field = error.path().to_string();
                let field = if field == "." { String::new() } else { field };
                PolicyError::field(field, reworded(&error.inner().to_string()))
            })?,
            Value::Number(_) | Value::Array(_) => {
                return Err(PolicyError::field(
                    "",
                    "write true, the name of a preset, or an object",
                ));
            }
        };
        draft.check()?;
        Ok(Some(draft))
    }

    /// Refuses a `policy.toml` that names something of the host that does not exist.
    ///
    /// # Errors
    /// With its line.
    pub fn require(
        &self,
        file: &str,
        text: &str,
        is_there: impl Fn(&Path) -> bool,
    ) -> Result<(), PolicyError> {
        let binds = self.binds.iter().enumerate();
        let named = binds.map(|(n, bind)| (format!("binds[{n}]"), bind.host.as_path()));
        let mut named = named.chain(self.rootfs.iter().map(|path| ("rootfs".into(), &**path)));
        match named.find(|(_, path)| !is_there(path)) {
            Some((field, path)) => Err(PolicyError::Line {
                file: file.to_owned(),
                line: find(text, &field).map_or(1, |at| line(text, &at)),
                reason: format!("{field}: {} does not exist", path.display()),
            }),
            None => Ok(()),
        }
    }

    /// Returns the whole policy: this draft on top of what it extends.
    ///
    /// # Errors
    /// When the preset is unknown, or nothing could run within a limit.
    pub fn resolve(self) -> Result<Policy, PolicyError> {
        self.limits.check()?;
        let base = preset(self.preset.as_deref().unwrap_or(DEFAULT_PRESET))?;
        Ok(self.onto(base))
    }

    /// Applies this draft to a base.
    pub(super) fn onto(self, mut base: Policy) -> Policy {
        for rule in self.permissions {
            base.add(rule);
        }
        Policy {
            preset: base.preset,
            files: self.files.unwrap_or(base.files),
            permissions: base.permissions,
            bounds: base.bounds,
            network: self.network.unwrap_or(base.network),
            limits: self.limits.onto(&base.limits),
            binds: base.binds.into_iter().chain(self.binds).collect(),
            rootfs: self.rootfs.or(base.rootfs),
            root: self.root.unwrap_or(base.root),
        }
    }

    /// Checks what parsing single fields cannot.
    fn check(&self) -> Result<(), PolicyError> {
        if let Some(name) = &self.preset
            && !super::PRESETS.iter().any(|(known, _)| known == name)
        {
            return Err(PolicyError::UnknownPreset { name: name.clone() });
        }
        for (n, rule) in self.permissions.iter().enumerate() {
            let same = |earlier: &&Rule| earlier.is_same_place(rule);
            if let Some(earlier) = self.permissions[..n].iter().find(same)
                && earlier.permission != rule.permission
            {
                return Err(PolicyError::field(
                    format!("permissions[{n}]"),
                    format!(
                        "`{}` is {} here and {} before, with the same priority; keep one",
                        rule.pattern, rule.permission, earlier.permission
                    ),
                ));
            }
        }
        for (n, bind) in self.binds.iter().enumerate() {
            bind.check().map_err(|reason| PolicyError::field(format!("binds[{n}]"), reason))?;
        }
        if let Some(rootfs) = &self.rootfs
            && !rootfs.is_absolute()
        {
            return Err(PolicyError::field("rootfs", "the path must be absolute"));
        }
        self.limits.check()
    }
}

impl Policy {
    /// Returns a policy without rules, and with every default.
    pub(super) fn empty() -> Self {
        Self {
            preset: None,
            files: FileMode::default(),
            permissions: Vec::new(),
            bounds: Vec::new(),
            network: Network::default(),
            limits: Limits::default(),
            binds: Vec::new(),
            rootfs: None,
            root: false,
        }
    }

    /// Adds a rule. It replaces one for the same paths with the same weight: an extending
    /// policy has the last word.
    pub fn add(&mut self, rule: Rule) {
        match self.permissions.iter_mut().find(|known| known.is_same_place(&rule)) {
            Some(known) => *known = rule,
            None => self.permissions.push(rule),
        }
    }
}

impl Rule {
    /// Whether it is for the same paths, with the same weight.
    fn is_same_place(&self, other: &Self) -> bool {
        self.pattern == other.pattern
            && self.kind() == other.kind()
            && self.priority() == other.priority()
    }
}

impl Limits {
    fn onto(self, base: &Self) -> Self {
        Self {
            memory_bytes: self.memory_bytes.or(base.memory_bytes),
            cpus: self.cpus.or(base.cpus),
            pids: self.pids.or(base.pids),
            open_files: self.open_files.or(base.open_files),
            layer_bytes: self.layer_bytes.or(base.layer_bytes),
        }
    }

    /// Refuses limits that nothing could run within.
    ///
    /// # Errors
    /// With the field.
    pub fn check(&self) -> Result<(), PolicyError> {
        // Below these no interpreter starts.
        let least = [
            ("memory_bytes", self.memory_bytes, 16 << 20),
            ("pids", self.pids, 4),
            ("open_files", self.open_files, 64),
            ("layer_bytes", self.layer_bytes, 1 << 20),
        ];
        for (name, value, least) in least {
            if value.is_some_and(|value| value < least) {
                let least = match least.checked_shr(20) {
                    Some(size @ 1..) => format!("{size}MiB"),
                    Some(0) | None => least.to_string(),
                };
                let reason = format!("must be at least {least}");
                return Err(PolicyError::field(format!("limits.{name}"), reason));
            }
        }
        match self.cpus {
            Some(cpus) if !(0.01..=4096.0).contains(&cpus) => {
                Err(PolicyError::field("limits.cpus", "must be between 0.01 and 4096"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn line(text: &str, at: &std::ops::Range<usize>) -> usize {
    text[..at.start.min(text.len())].matches('\n').count() + 1
}

/// Finds a field in a TOML text: its last name, or the nth element of a list.
fn find(text: &str, field: &str) -> Option<std::ops::Range<usize>> {
    let table: toml::de::DeTable<'_> = toml::de::DeTable::parse(text).ok()?.into_inner();
    let (name, index) = match field.split_once('[') {
        Some((name, rest)) => (name, rest.trim_end_matches(']').parse::<usize>().ok()),
        None => (field, None),
    };
    let mut names = name.split('.');
    let mut value = table.get(names.next()?)?;
    for name in names {
        value = value.get_ref().as_table()?.get(name)?;
    }
    match index {
        Some(n) => Some(value.get_ref().as_array()?.get(n)?.span()),
        None => Some(value.span()),
    }
}

//! The control groups of a session with limits: known to its guardian from the start, and
//! recorded in a file for a successor after both are gone.

use sessile_protocol::Boot;
use sessile_sandbox::limits::{self, GroupPlan, LimitPlan, LimitSupport};
use sessile_sandbox::{Limits, Policy};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// In the session's directory: one path per line.
const FILE: &str = "groups";

/// Possible locations of a session's groups.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    tops: Vec<PathBuf>,
    session: String,
}

impl Groups {
    /// Returns the groups of a session that is about to be started.
    pub(crate) fn of(boot: &Boot) -> Self {
        let policy: Option<Policy> =
            boot.sandbox.as_ref().and_then(|policy| serde_json::from_str(policy).ok());
        let Some(policy) = policy.filter(|policy| policy.limits != Limits::default()) else {
            return Self::default();
        };
        let plan = LimitPlan::new(&policy.limits, &LimitSupport::detect(), &name_of(boot)).ok();
        let tops = plan.and_then(|plan| plan.group).map(|group| group.tops());
        Self { tops: tops.unwrap_or_default(), session: boot.session.to_string() }
    }

    /// Returns the groups of a session whose keeper is gone.
    pub(crate) fn written_down(boot: &Boot) -> Self {
        let text = std::fs::read_to_string(boot.directory.join(FILE)).unwrap_or_default();
        Self { tops: text.lines().map(PathBuf::from).collect(), session: boot.session.to_string() }
    }

    /// Removes the groups, with what is left in them.
    pub(crate) fn remove(&self) {
        limits::remove(&self.tops, &self.session);
    }
}

/// Returns the name of the groups. A durable session may be in use in several directories
/// of a machine at once, until the first of them learns that it has moved; ending one
/// must not affect the groups of the others.
pub(crate) fn name_of(boot: &Boot) -> String {
    let mut hasher = DefaultHasher::new();
    boot.directory.hash(&mut hasher);
    format!("{}-{:08x}", boot.session, hasher.finish() >> 32)
}

/// Records the groups before they are created. If that fails, the guardian still knows
/// them.
pub(crate) fn write_down(directory: &Path, group: Option<&GroupPlan>) {
    let Some(group) = group else { return };
    let lines: Vec<String> =
        group.tops().iter().map(|top| format!("{}\n", top.display())).collect();
    let mut options = std::fs::File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    let file = options.open(directory.join(FILE));
    let _ = file.and_then(|mut file| file.write_all(lines.concat().as_bytes()));
}

//! Directories that the caller adds, and where they may be mounted.

use super::host::Host;
use super::{Access, HOME, OWN, Place, Plan, Refusal, Step, WORKSPACE};
use crate::policy::{Bind, Level};
use crate::rules::Need;
use std::path::Path;

impl Plan {
    /// Adds a directory of the caller's choice.
    pub(super) fn bind(
        &mut self,
        bind: &Bind,
        host: &Host,
        place: &Place,
        need: Need,
    ) -> Result<(), Refusal> {
        let at = bind.inside().to_owned();
        if let Some(reason) = taken(&at).or_else(|| against_rules(bind, need)) {
            return Err(Refusal::Path { path: at, reason: reason.to_owned() });
        }
        let access = if bind.read_only { Access::ReadOnly } else { Access::Writable };
        self.steps.push(Step::Tree { host: bind.host.clone(), at: at.clone(), access });
        if access == Access::Writable {
            self.writable.push(at.clone());
        }
        self.cover_sockets(host, &bind.host, &at);
        self.hide_below(&bind.host, &at, place)
    }
}

/// Returns why a directory of the host cannot be mounted at this path, if so.
fn taken(at: &Path) -> Option<&'static str> {
    let is_at = |path: &str| at == Path::new(path);
    let is_below = |path: &str| at.starts_with(path);
    if at.components().count() < 2 {
        return Some("it would take the place of everything");
    }
    if is_below("/proc") || is_below("/dev") || is_below("/sys") {
        return Some("that is the kernel's");
    }
    if is_below(OWN) {
        return Some("that is Sessile's");
    }
    if [WORKSPACE, "/tmp", HOME, "/home", "/root", "/etc"].into_iter().any(is_at) {
        return Some("that place is taken; choose another with HOST:INSIDE");
    }
    None
}

/// Returns why a directory of the host cannot be mounted in the workspace, if so: the
/// workspace's rules would not apply to it.
fn against_rules(bind: &Bind, need: Need) -> Option<&'static str> {
    if !bind.inside().starts_with(WORKSPACE) {
        return None;
    }
    match need {
        Need::Uniform(Level::Write) => None,
        Need::Uniform(Level::Read) if bind.read_only => None,
        Need::Uniform(Level::Read) => Some(
            "by this policy the workspace can only be read: add :ro, or choose a place outside \
             of /workspace with HOST:INSIDE",
        ),
        Need::Uniform(Level::None | Level::View) | Need::PerPath => Some(
            "the rules for paths of the workspace would not hold there: choose a place outside \
             of /workspace with HOST:INSIDE",
        ),
    }
}

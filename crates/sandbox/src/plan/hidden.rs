//! What is never shown, even below a directory that is shown: the files of sessions.

use super::{Place, Plan, Refusal, Step};
use crate::policy::{Level, Policy, Rule, RuleType};
use std::path::Path;

impl Plan {
    /// Hides what must not be visible of a shown directory.
    pub(super) fn hide_below(
        &mut self,
        shown: &Path,
        at: &Path,
        place: &Place,
    ) -> Result<(), Refusal> {
        for hidden in &place.hidden {
            match hidden.strip_prefix(shown) {
                Ok(below) if below.as_os_str().is_empty() => {
                    let reason = "the sessions of this user are kept there".to_owned();
                    return Err(Refusal::Path { path: shown.to_owned(), reason });
                }
                Ok(below) => self.steps.push(Step::Hidden { at: at.join(below) }),
                // The reverse: all of it is within what is hidden.
                Err(_) if shown.starts_with(hidden) => {
                    let reason = "it is within a directory of sessions".to_owned();
                    return Err(Refusal::Path { path: shown.to_owned(), reason });
                }
                Err(_) => {}
            }
        }
        Ok(())
    }
}

/// Returns the rules for our file system: with those that hide what a mount hides as well. It
/// moves directories entry by entry, and a mount does not always come along.
pub(super) fn also(policy: &Policy, place: &Place) -> Policy {
    let below = place.hidden.iter().filter_map(|hidden| hidden.strip_prefix(&place.workspace).ok());
    // The workspace itself is not moved.
    let below = below.filter(|below| below.components().count() > 1);
    let mut rules: Vec<Rule> = below.filter_map(hides).collect();
    let mut policy = policy.clone();
    if !rules.is_empty() {
        let all = "**/*".parse().ok();
        rules.extend(all.map(|pattern| rule(pattern, Level::Write, RuleType::Glob)));
        // A set of their own, so that no other rule wins over them.
        policy.bounds.push(rules);
    }
    policy
}

/// Returns the rule that hides a path and all beneath it. None for a path that is not text.
fn hides(path: &Path) -> Option<Rule> {
    let is_plain = |c: char| c.is_alphanumeric() || "/.-_".contains(c);
    let escaped = |c: char| (!is_plain(c)).then_some('\\').into_iter().chain([c]);
    let pattern: String = path.to_str()?.chars().flat_map(escaped).collect();
    Some(rule(format!("/{pattern}").parse().ok()?, Level::None, RuleType::Directory))
}

fn rule(pattern: crate::policy::Pattern, permission: Level, kind: RuleType) -> Rule {
    let priority = Some(i32::from(permission == Level::None));
    Rule { pattern, permission, kind: Some(kind), priority }
}

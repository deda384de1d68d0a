//! Which level a path has: pure, the same for every part that enforces it.
//!
//! A level is a function of the path alone, not of what lies there. So it is
//! known before a file exists, and nothing but a rename changes it.
//!
//! - Of the rules that match, the highest priority wins, then file over
//!   directory over glob, then the more specific pattern, then the stricter
//!   level. The order of the rules never matters.
//! - A rule with level `none` also matches everything beneath its matches: the content of
//!   a hidden directory is hidden, unless a rule that wins over the hiding one says
//!   otherwise.
//! - A path that no rule matches is hidden. The workspace itself is never hidden.
//! - A hidden directory can be viewed if the fixed beginning of a winning rule leads
//!   through it: `**/*` none with `/a/b/**` read shows `/a`, and in it nothing but `b`.
//! - Where a bound is set (a token's), the stricter of both levels counts.

mod compare;
mod explain;
mod moves;
mod need;

use std::cmp::Ordering;

use crate::policy::{Glob, Level, Policy, Rule, RuleType, Specificity};

pub use need::Need;

/// The rules of a policy, prepared for lookups.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The policy's own, then those of each bound. All must allow.
    sets: Vec<Set>,
}

/// Rules of which one wins.
#[derive(Debug, Clone)]
struct Set {
    /// The heaviest first.
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    weight: Weight,
    level: Level,
    kind: RuleType,
    glob: Glob,
    /// The index of its rule in the policy.
    rule: usize,
}

/// What decides between matching rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Weight {
    priority: i32,
    kind: RuleType,
    specificity: Specificity,
}

/// The level of a path, and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    pub level: Level,
    pub why: Why,
}

/// The reason for a path's level. Rules are identified by their index in the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Rule(usize),
    /// A rule of the bound with this index.
    Bound {
        bound: usize,
        rule: usize,
    },
    /// No rule matches.
    Unmatched,
    /// The parent directory at this depth is hidden.
    HiddenParent {
        depth: usize,
    },
    /// It leads to what this rule shows.
    Passage(usize),
    /// The workspace itself, which is always visible.
    Workspace,
}

impl Rules {
    /// Prepares the rules of a policy.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        let sets = std::iter::once(&policy.permissions)
            .chain(policy.bounds.iter())
            .map(|rules| Set::new(rules))
            .collect();
        Self { sets }
    }

    /// Returns the level of a path of the workspace, `/src/main.rs` or `src/main.rs`.
    #[must_use]
    pub fn level_of(&self, path: &[u8]) -> Level {
        self.verdict(path).level
    }

    /// Returns the level of a path and the reason.
    #[must_use]
    pub fn verdict(&self, path: &[u8]) -> Verdict {
        let names = names(path);
        for depth in 1..names.len() {
            if self.of_names(&names[..depth]).level == Level::None {
                return Verdict { level: Level::None, why: Why::HiddenParent { depth } };
            }
        }
        self.of_names(&names)
    }

    /// Returns the level of a path whose parents are known not to be hidden.
    #[must_use]
    pub fn own_level(&self, names: &[&[u8]]) -> Level {
        self.of_names(names).level
    }

    fn of_names(&self, names: &[&[u8]]) -> Verdict {
        let mut strictest = self.sets[0].verdict(names);
        for (bound, set) in self.sets.iter().enumerate().skip(1) {
            let verdict = set.verdict(names);
            if verdict.level < strictest.level {
                strictest = verdict.of_bound(bound - 1);
            }
        }
        strictest
    }
}

impl Verdict {
    /// Returns the same verdict, attributed to a bound.
    fn of_bound(self, bound: usize) -> Self {
        if let Why::Rule(rule) = self.why {
            return Self { why: Why::Bound { bound, rule }, ..self };
        }
        self
    }
}

/// Splits a path into names.
#[must_use]
pub fn names(path: &[u8]) -> Vec<&[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect()
}

impl Set {
    fn new(rules: &[Rule]) -> Self {
        let mut entries: Vec<Entry> = rules
            .iter()
            .enumerate()
            .flat_map(|(n, rule)| rule.pattern.globs().iter().map(move |glob| (n, rule, glob)))
            .map(|(n, rule, glob)| Entry {
                weight: Weight {
                    priority: rule.priority(),
                    kind: rule.kind(),
                    specificity: glob.specificity(),
                },
                level: rule.permission,
                kind: rule.kind(),
                glob: glob.clone(),
                rule: n,
            })
            .collect();
        entries.sort_by(Entry::heavier_first);
        Self { entries }
    }

    fn verdict(&self, names: &[&[u8]]) -> Verdict {
        let found = self.entries.iter().position(|entry| entry.matches(names));
        let (level, why) = match found {
            Some(n) => (self.entries[n].level, Why::Rule(self.entries[n].rule)),
            None => (Level::None, Why::Unmatched),
        };
        if level > Level::None {
            return Verdict { level, why };
        }
        // Only rules that weigh more than the hiding one can show anything.
        let heavier = &self.entries[..found.unwrap_or(self.entries.len())];
        match heavier.iter().find(|entry| entry.leads_through(names)) {
            Some(entry) => Verdict { level: Level::View, why: Why::Passage(entry.rule) },
            None if names.is_empty() => Verdict { level: Level::View, why: Why::Workspace },
            None => Verdict { level, why },
        }
    }
}

impl Entry {
    fn heavier_first(&self, other: &Self) -> Ordering {
        // Of equal weights the stricter level comes first, whatever the order of the rules.
        other.weight.cmp(&self.weight).then(self.level.cmp(&other.level))
    }

    fn matches(&self, names: &[&[u8]]) -> bool {
        if self.glob.matches(names) {
            return true;
        }
        let covers_beneath = self.level == Level::None || self.kind == RuleType::Directory;
        covers_beneath && (0..names.len()).rev().any(|depth| self.glob.matches(&names[..depth]))
    }

    /// Whether it shows something below this path.
    fn leads_through(&self, names: &[&[u8]]) -> bool {
        self.level > Level::None
            && names.len() <= self.glob.beginning().count()
            && names.iter().copied().eq(self.glob.beginning().take(names.len()))
    }
}

#[cfg(test)]
mod tests;

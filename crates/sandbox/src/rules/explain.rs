//! Explains why a path has its level.

use super::{Rules, Why, names};
use crate::policy::Policy;

impl Policy {
    /// Returns the level of a path and its reason, as the end of a sentence:
    /// `rule "**/.env*" none, priority 100`.
    #[must_use]
    pub fn explain(&self, path: &[u8]) -> (super::Verdict, String) {
        let rules = Rules::new(self);
        let verdict = rules.verdict(path);
        (verdict, self.reason(&rules, path, verdict.why))
    }

    fn reason(&self, rules: &Rules, path: &[u8], why: Why) -> String {
        match why {
            Why::Rule(n) => format!("the rule `{}`", self.permissions[n]),
            Why::Bound { bound, rule } => {
                format!("the rule `{}` of what confines the caller", self.bounds[bound][rule])
            }
            Why::Unmatched => "no rule matches".to_owned(),
            Why::HiddenParent { depth } => {
                let parent = names(path)[..depth].join(&b'/');
                let reason = self.reason(rules, &parent, rules.verdict(&parent).why);
                format!("/{} is hidden: {reason}", String::from_utf8_lossy(&parent))
            }
            Why::Passage(n) => format!("it leads to what the rule `{}` shows", self.permissions[n]),
            Why::Workspace => "the workspace itself is always there".to_owned(),
        }
    }
}

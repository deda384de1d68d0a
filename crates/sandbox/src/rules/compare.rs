//! A policy within a bound: the maximum that a token allows.

use crate::policy::{FileMode, HostRule, Limits, Network, Policy};

impl Policy {
    /// Returns this policy, made at least as strict as the bound in everything. The
    /// bound's rules are kept beside its own: for each path the stricter level counts.
    #[must_use]
    pub fn within(mut self, bound: &Policy) -> Self {
        for rules in std::iter::once(&bound.permissions).chain(&bound.bounds) {
            if self.permissions != *rules && !self.bounds.contains(rules) {
                self.bounds.push(rules.clone());
            }
        }
        self.files = match (self.files, bound.files) {
            (FileMode::Direct, FileMode::Direct) => FileMode::Direct,
            (FileMode::Overlay, _) | (_, FileMode::Overlay) => FileMode::Overlay,
        };
        self.network = self.network.within(&bound.network);
        self.limits = self.limits.within(&bound.limits);
        self.binds.retain(|bind| {
            bound.binds.iter().any(|known| {
                known.host == bind.host
                    && known.inside() == bind.inside()
                    && (bind.read_only || !known.read_only)
            })
        });
        // Another system tree is a directory of the host: only the bound's own is allowed.
        if self.rootfs != bound.rootfs {
            self.rootfs.clone_from(&bound.rootfs);
        }
        self.root &= bound.root;
        self
    }
}

impl Policy {
    /// Whether it is at least as strict as the bound in everything, as far as this can be
    /// decided from the text.
    #[must_use]
    pub fn is_within(&self, bound: &Self) -> bool {
        let mut own = self.clone();
        if let Network::Hosts(hosts) = own.network {
            own.network = Network::Hosts(plain(hosts));
        }
        own.clone().within(bound) == own
    }

    /// Returns a short mark that differs between policies.
    #[must_use]
    pub fn mark(&self) -> String {
        // FNV-1a: the same in every version, and nothing depends on its strength.
        let text = serde_json::to_string(self).unwrap_or_default();
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        format!("sandbox-{hash:016x}")
    }
}

impl Network {
    fn within(self, bound: &Self) -> Self {
        match (self, bound) {
            (Self::None, _) | (_, Self::None) => Self::None,
            (Self::Hosts(own), Self::Full) => Self::Hosts(plain(own)),
            (Self::Full, Self::Full) => Self::Full,
            (Self::Full, Self::Hosts(hosts)) => Self::Hosts(plain(hosts.clone())),
            (Self::Hosts(own), Self::Hosts(bound)) => {
                let pairs = own.iter().flat_map(|own| bound.iter().map(move |bound| (own, bound)));
                Self::Hosts(plain(pairs.filter_map(|(own, bound)| own.and(bound)).collect()))
            }
        }
    }
}

/// Returns the same list without redundant lines, in a canonical order, for comparison.
fn plain(mut hosts: Vec<HostRule>) -> Vec<HostRule> {
    hosts.sort_by_key(ToString::to_string);
    hosts.dedup();
    let all = hosts.clone();
    hosts.retain(|one| {
        !all.iter().any(|other| other != one && other.and(one).as_ref() == Some(one))
    });
    hosts
}

impl Limits {
    fn within(self, bound: &Self) -> Self {
        fn least<T: PartialOrd>(own: Option<T>, bound: Option<T>) -> Option<T> {
            match (own, bound) {
                (Some(own), Some(bound)) => Some(if own < bound { own } else { bound }),
                (own, bound) => own.or(bound),
            }
        }
        Self {
            memory_bytes: least(self.memory_bytes, bound.memory_bytes),
            cpus: least(self.cpus, bound.cpus),
            pids: least(self.pids, bound.pids),
            open_files: least(self.open_files, bound.open_files),
            layer_bytes: least(self.layer_bytes, bound.layer_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Draft;
    use serde_json::{Value, json};

    fn policy(value: &Value) -> Policy {
        Draft::from_json(value).unwrap().unwrap().resolve().unwrap()
    }

    #[test]
    fn what_was_put_within_a_bound_is_within_it_and_what_is_laxer_is_not() {
        let all = [
            json!("read-only"),
            json!("agent-safe"),
            json!("full-access"),
            json!({"preset": "full-access", "files": "direct", "network": "full"}),
            json!({"network": ["*.a.com:443", "x.a.com", "b.com"], "limits": {"pids": 9}}),
            json!({"network": ["x.a.com", "y.a.com:1", "10.0.0.1"], "limits": {"memory_bytes": 99999999}}),
            json!({"binds": [{"host": "/data"}], "permissions": [{"pattern": "a", "permission": "none"}]}),
        ];
        for (n, own) in all.iter().enumerate() {
            for (m, bound) in all.iter().enumerate() {
                let (own, bound) = (policy(own), policy(bound));
                let both = own.clone().within(&bound);
                assert!(both.is_within(&bound), "{n} within {m}: {both:?}");
                assert!(both.is_within(&own) || !own.binds.is_empty() || !bound.binds.is_empty());
                assert!(own.is_within(&own), "{n}");
            }
        }
        let is_within = |own: Value, bound: Value| policy(&own).is_within(&policy(&bound));
        assert!(is_within(json!("read-only"), json!("read-only")));
        assert!(!is_within(json!("full-access"), json!("read-only")));
        assert!(!is_within(json!({"network": "full"}), json!({"network": ["a.com"]})));
        assert!(!is_within(json!({"network": ["a.com"]}), json!({"network": ["a.com:443"]})));
        assert!(is_within(json!({"network": ["a.com:443"]}), json!({"network": ["a.com"]})));
        assert!(!is_within(json!({"files": "direct"}), json!({})));
        assert!(!is_within(json!({}), json!({"limits": {"pids": 100}})));
    }
}

use super::*;
use crate::policy::preset;

fn policy(rules: &[&str]) -> Policy {
    let mut policy = preset("full-access").unwrap();
    policy.permissions = rules.iter().map(|text| Rule::parse(text).unwrap()).collect();
    policy
}

fn levels<const N: usize>(rules: &[&str], paths: [&str; N]) -> [&'static str; N] {
    let rules = Rules::new(&policy(rules));
    paths.map(|path| rules.level_of(path.as_bytes()).word())
}

#[test]
fn the_default_preset_hides_what_is_usually_secret() {
    let rules = Rules::new(&preset("development").unwrap());
    let hidden =
        [".env", "a/.env.local", "secrets", "a/secrets/b/c", "x.key", "a/b.pem", ".env.d/x"];
    for path in hidden {
        assert_eq!(rules.level_of(path.as_bytes()), Level::None, "{path}");
    }
    for path in ["", "/", "env", "secret", "a/b", "x.keys", "secrets.py"] {
        assert_eq!(rules.level_of(path.as_bytes()), Level::Write, "{path}");
    }
    assert_eq!(rules.need(), Need::PerPath);
    for (name, level) in
        [("view-only", Level::View), ("read-only", Level::Read), ("full-access", Level::Write)]
    {
        assert_eq!(Rules::new(&preset(name).unwrap()).need(), Need::Uniform(level));
    }
}

#[test]
fn priority_then_type_then_specificity_then_strictness_decide() {
    let one = |rules: &[&str], path| levels(rules, [path])[0];
    assert_eq!(one(&["**/*=none@1", "/a/b=write"], "/a/b"), "none");
    assert_eq!(one(&["/a/*=write", "/a/=read"], "/a/b"), "read");
    assert_eq!(one(&["**/*=read", "/*=view", "/a*=write"], "/ab"), "write");
    assert_eq!(one(&["/src/**=read", "/src/*=write"], "/src/x"), "write");
    assert_eq!(one(&["**/*=write", "/s?c/x*=read", "/sr?/x*=view"], "/src/x"), "view");
    assert_eq!(one(&["*.{md,txt}=read", "**/*=view"], "/a/b.txt"), "read");
}

#[test]
fn hidden_directories_hide_what_is_beneath_unless_something_heavier_shows_it() {
    let rules = ["**/*=write", "/s/**=none@5", "/s/pub/*.txt=read@9", "**/x=none"];
    assert_eq!(
        levels(&rules, ["/s", "/s/a", "/s/pub", "/s/pub/a", "/s/pub/a.txt", "/s/pub/a.txt/b"]),
        ["view", "none", "view", "none", "read", "none"]
    );
    assert_eq!(levels(&rules, ["/x", "/x/y", "/a/x/y/z"]), ["none"; 3]);
    // An allow-list.
    assert_eq!(
        levels(
            &["**/*=none", "/a/b/**=read", "*.md=read"],
            ["", "/a", "/a/c", "/a/b/c", "/x.md", "/x/y.md"]
        ),
        ["view", "view", "none", "read", "read", "none"]
    );
    let rules = Rules::new(&policy(&["**/*=none", "*.md=read"]));
    assert_eq!(rules.verdict(b"/x/y.md").why, Why::HiddenParent { depth: 1 });
}

#[test]
fn it_is_told_which_rule_gave_a_path_its_level() {
    let policy = policy(&["**/*=write", "/s/**=none@5", "/s/pub/*.txt=read@9"]);
    let told = |path: &str| policy.explain(path.as_bytes()).1;
    assert_eq!(told("/a"), "the rule `**/* write`");
    assert_eq!(told("/s/pub"), "it leads to what the rule `/s/pub/*.txt read, priority 9` shows");
    assert_eq!(told("/s/x/y"), "/s/x is hidden: the rule `/s/** none, priority 5`");
    let bound = policy.clone().within(&preset("read-only").unwrap());
    assert_eq!(bound.explain(b"/a").0.level, Level::Read);
    assert_eq!(bound.explain(b"/a").1, "the rule `**/* read` of what confines the caller");
    assert_eq!(Rules::new(&bound).level_of(b"/s/x"), Level::None);
}

/// The rules at the head of this module, implemented again in a slow and simple way.
fn reference(rules: &[Rule], path: &[&str]) -> Level {
    fn part(pattern: &[u8], name: &[u8]) -> bool {
        match pattern {
            [] => name.is_empty(),
            [b'*', rest @ ..] => (0..=name.len()).any(|n| part(rest, &name[n..])),
            [b'?', rest @ ..] => !name.is_empty() && part(rest, &name[1..]),
            [c, rest @ ..] => name.first() == Some(c) && part(rest, &name[1..]),
        }
    }
    fn whole(pattern: &[&str], path: &[&str]) -> bool {
        match pattern {
            [] => path.is_empty(),
            ["**", rest @ ..] => (0..=path.len()).any(|n| whole(rest, &path[n..])),
            [first, rest @ ..] => {
                !path.is_empty()
                    && part(first.as_bytes(), path[0].as_bytes())
                    && whole(rest, &path[1..])
            }
        }
    }
    let matches = |rule: &Rule, path: &[&str]| {
        let text = rule.pattern.as_str();
        let mut pattern: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        if !text.starts_with('/') && pattern.len() == 1 {
            pattern.insert(0, "**");
        }
        // Everything, including the workspace.
        if pattern == ["**", "*"] {
            return true;
        }
        let covers = rule.permission == Level::None || rule.kind() == RuleType::Directory;
        whole(&pattern, path) || (covers && (0..path.len()).any(|n| whole(&pattern, &path[..n])))
    };
    let weight = |rule: &Rule| {
        let glob = &rule.pattern.globs()[0];
        (rule.priority(), rule.kind(), glob.specificity(), std::cmp::Reverse(rule.permission))
    };
    let own = |path: &[&str]| {
        let best = rules.iter().filter(|rule| matches(rule, path)).max_by_key(|rule| weight(rule));
        let level = best.map_or(Level::None, |rule| rule.permission);
        let shows = |rule: &Rule| {
            let fixed: Vec<&str> = rule
                .pattern
                .as_str()
                .split('/')
                .skip(1)
                .take_while(|part| !part.contains(['*', '?']))
                .collect();
            rule.permission > Level::None
                && (path.is_empty() || rule.pattern.as_str().starts_with('/'))
                && path.len() <= fixed.len()
                && path == &fixed[..path.len()]
                && best.is_none_or(|best| weight(rule) > weight(best))
        };
        let is_shown = path.is_empty() || rules.iter().any(shows);
        if level == Level::None && is_shown { Level::View } else { level }
    };
    if (1..path.len()).any(|n| own(&path[..n]) == Level::None) {
        return Level::None;
    }
    own(path)
}

mod random {
    use super::*;
    use proptest::prelude::*;

    fn rule() -> impl Strategy<Value = Rule> {
        let part = prop::sample::select(vec!["a", "b", "c", "*", "**", "a*", "?"]);
        let pattern =
            (prop::collection::vec(part, 1..4), any::<bool>()).prop_map(|(parts, anchored)| {
                let mut parts = parts;
                parts.dedup_by(|a, b| *a == "**" && *b == "**");
                format!("{}{}", if anchored || parts.len() > 1 { "/" } else { "" }, parts.join("/"))
            });
        let level = prop::sample::select(vec![Level::None, Level::View, Level::Read, Level::Write]);
        let kinds = [None, Some(RuleType::Glob), Some(RuleType::Directory), Some(RuleType::File)];
        let kind = prop::sample::select(kinds.to_vec());
        (pattern, level, kind, 0..3_i32).prop_map(|(pattern, permission, kind, priority)| Rule {
            pattern: pattern.parse().unwrap(),
            permission,
            kind,
            priority: Some(priority),
        })
    }

    fn path() -> impl Strategy<Value = Vec<&'static str>> {
        prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "ab"]), 0..4)
    }

    fn compiled(rules: &[Rule]) -> Rules {
        let permissions = rules.to_vec();
        Rules::new(&Policy { permissions, ..preset("full-access").unwrap() })
    }

    proptest! {
        #![proptest_config(sessile_testkit::cases(256))]
        #[test]
        fn levels_are_those_of_the_slow_way(
            rules in prop::collection::vec(rule(), 0..6),
            path in path(),
        ) {
            let got = compiled(&rules).level_of(path.join("/").as_bytes());
            prop_assert_eq!(got, reference(&rules, &path));
        }

        #[test]
        fn the_order_of_rules_never_matters(
            rules in prop::collection::vec(rule(), 0..6).prop_shuffle(),
            path in path(),
        ) {
            let mut sorted = rules.clone();
            sorted.sort_by_key(ToString::to_string);
            let path = path.join("/");
            prop_assert_eq!(
                compiled(&rules).level_of(path.as_bytes()),
                compiled(&sorted).level_of(path.as_bytes())
            );
        }

        #[test]
        fn nothing_is_seen_in_what_is_hidden_and_uniform_means_uniform(
            rules in prop::collection::vec(rule(), 0..6),
            path in path(),
        ) {
            let compiled = compiled(&rules);
            let level = compiled.level_of(path.join("/").as_bytes());
            if level == Level::None {
                let child = format!("{}/a", path.join("/"));
                prop_assert_eq!(compiled.level_of(child.as_bytes()), Level::None);
            }
            if let Need::Uniform(all) = compiled.need() {
                prop_assert!(level == all || path.is_empty());
            }
        }

        #[test]
        fn what_moves_unseen_keeps_its_level(
            rules in prop::collection::vec(rule(), 0..6),
            (from, to, beneath) in (path(), path(), path()),
        ) {
            let compiled = compiled(&rules);
            let bytes = |path: &[&'static str]| -> Vec<&'static [u8]> {
                path.iter().map(|name| name.as_bytes()).collect()
            };
            if compiled.can_move_unseen(&bytes(&from), &bytes(&to)) {
                let at = |start: &[&'static str]| compiled.own_level(&bytes(&[start, &beneath].concat()));
                // The workspace itself does not move.
                if !from.is_empty() && !to.is_empty() {
                    prop_assert_eq!(at(&from), at(&to));
                }
            }
        }
    }
}

use serde_json::json;

use super::*;

fn rules(policy: &Policy) -> Vec<String> {
    policy.permissions.iter().map(ToString::to_string).collect()
}

#[test]
fn the_presets_are_what_was_agreed() {
    let of = |name| rules(&preset(name).unwrap());
    assert_eq!(of("view-only"), ["**/* view"]);
    assert_eq!(of("read-only"), ["**/* read"]);
    assert_eq!(of("full-access"), ["**/* write"]);
    assert_eq!(
        of("development"),
        [
            "**/* write, priority 0",
            "**/.env* none, priority 100",
            "**/secrets/** none, priority 100",
            "**/*.key none, priority 100",
            "**/*.pem none, priority 100",
        ]
    );
    assert_eq!(
        of("agent-safe"),
        [
            "**/* read, priority 0",
            "/output/** write, priority 10",
            "/tmp/** write, priority 10",
            "**/.git/** none, priority 50",
            "**/.env* none, priority 100",
            "**/secrets/** none, priority 100",
            "**/*.key none, priority 100",
            "**/*.pem none, priority 100",
            "**/credentials* none, priority 100",
        ]
    );
}

#[test]
fn a_request_names_a_preset_or_says_it_all() {
    let of = |value| Draft::from_json(&value).unwrap().unwrap().resolve().unwrap();
    assert_eq!(of(json!(true)), preset("development").unwrap());
    assert_eq!(of(json!("agent-safe")), preset("agent-safe").unwrap());
    assert_eq!(of(json!({})), preset("development").unwrap());
    assert_eq!(Draft::from_json(&json!(false)), Ok(None));
    let whole = of(json!({
        "preset": "read-only",
        "files": "direct",
        "permissions": [{"pattern": "/build/**", "permission": "write", "type": "glob", "priority": 10}],
        "network": ["api.example.com", "*.example.org:443"],
        "limits": {"memory_bytes": 1073741824, "cpus": 1.5, "pids": 200},
        "binds": [{"host": "/data", "inside": "/data", "read_only": true}],
        "rootfs": null, "root": true
    }));
    assert_eq!(rules(&whole), ["**/* read", "/build/** write, priority 10"]);
    assert_eq!(whole.files, FileMode::Direct);
    assert_eq!(whole.limits.cpus, Some(1.5));
    assert!(whole.root && whole.binds[0].read_only);
}

#[test]
fn a_resolved_policy_comes_back_from_json_and_from_messages() {
    let draft =
        json!({"preset": "agent-safe", "network": ["a.example:443"], "limits": {"pids": 9}});
    let policy = Draft::from_json(&draft).unwrap().unwrap().resolve().unwrap();
    let policy = policy.within(&preset("development").unwrap());
    let text = serde_json::to_string(&policy).unwrap();
    assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
    let bytes = rmp_serde::to_vec_named(&policy).unwrap();
    assert_eq!(rmp_serde::from_slice::<Policy>(&bytes).unwrap(), policy);
}

#[test]
fn a_policy_file_adds_to_what_it_extends() {
    let text = "extends = \"agent-safe\"\nnetwork = \"full\"\n\n[limits]\nmemory_bytes = 536_870_912\n\n\
                [[permissions]]\npattern = \"/build\"\npermission = \"write\"\npriority = 20\n\n\
                [[permissions]]\npattern = \"**/.git/**\"\npermission = \"read\"\npriority = 50\n";
    let policy = Draft::from_toml("policy.toml", text).unwrap().resolve().unwrap();
    assert_eq!(policy.preset.as_deref(), Some("agent-safe"));
    assert_eq!(policy.network, Network::Full);
    assert_eq!(policy.limits.memory_bytes, Some(512 << 20));
    let all = rules(&policy);
    assert!(all.contains(&"/build write, priority 20".to_owned()), "{all:?}");
    // The same paths with the same weight: the extending policy has the last word.
    assert!(all.contains(&"**/.git/** read, priority 50".to_owned()), "{all:?}");
    assert!(!all.contains(&"**/.git/** none, priority 50".to_owned()), "{all:?}");
}

#[test]
fn what_is_wrong_in_a_file_is_told_with_its_line() {
    let cases = [
        ("extends = \"nope\"\n", "p:1: there is no preset \"nope\"; there are view-only,"),
        ("\nfilez = \"overlay\"\n", "p:2: unknown field `filez`"),
        ("files = \"both\"\n", "p:1: unknown variant `both`"),
        ("\n\nnetwork = \"some\"\n", "p:3: unknown network \"some\"; write"),
        ("x = [\n", "p:"),
        ("[[permissions]]\npattern = \"a[\"\npermission = \"none\"\n", "p:2: the pattern \"a[\""),
        ("[[permissions]]\npattern = \"a\"\npermission = \"rw\"\n", "p:3: unknown variant `rw`"),
        ("[[permissions]]\npattern = \"a\"\n", "p:1: missing field `permission`"),
        ("[limits]\n\npids = 1\n", "p:3: limits.pids: must be at least 4"),
        ("[limits]\ncpus = 0.0\n", "p:2: limits.cpus: must be between"),
        ("[limits]\nram = 1\n", "p:2: unknown field `ram`"),
        ("\nrootfs = \"tree\"\n", "p:2: rootfs: the path must be absolute"),
        ("[[binds]]\nhost = \"data\"\n", "p:1: binds[0]: the host's path must be absolute"),
        (
            "permissions = [\n{pattern = \"a\", permission = \"read\"},\n{pattern = \"a\", permission = \"none\"}]\n",
            "p:3: permissions[1]: `a` is none here and read before",
        ),
    ];
    for (text, expected) in cases {
        let error = Draft::from_toml("p", text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn what_is_wrong_in_a_request_is_told_with_its_field() {
    let cases = [
        (json!("nope"), "there is no preset \"nope\""),
        (json!(7), "sandbox: write true, the name of a preset, or an object"),
        (json!({"netwrk": "none"}), "sandbox.netwrk: unknown field `netwrk`"),
        (
            json!({"limits": {"pids": "many"}}),
            "sandbox.limits.pids: must be a whole number, 0 or more",
        ),
        (
            json!({"permissions": [{"pattern": "a", "permission": "rw"}]}),
            "sandbox.permissions[0].permission: unknown variant `rw`",
        ),
        (
            json!({"permissions": [{"pattern": "../a", "permission": "none"}]}),
            "sandbox.permissions[0].pattern: the pattern \"../a\" has a part `..`",
        ),
        (
            json!({"permissions": [{"pattern": "[z-a]*", "permission": "none"}]}),
            "sandbox.permissions[0].pattern: the pattern \"[z-a]*\" has the range `z-a`",
        ),
        (
            json!({"permissions": [{"pattern": "a", "permission": "none", "prio": 1}]}),
            "sandbox.permissions[0].prio: unknown field `prio`",
        ),
    ];
    for (value, expected) in cases {
        let error = Draft::from_json(&value).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{value}: {error}");
    }
}

#[test]
fn rules_and_binds_are_read_from_options() {
    let rule = |text| Rule::parse(text).unwrap().to_string();
    assert_eq!(rule("/build/**=write"), "/build/** write");
    assert_eq!(rule("**/a=b=none@7"), "**/a=b none, priority 7");
    for bad in ["/build", "/build=rw", "=read", "a=read@x", "[=read"] {
        assert!(Rule::parse(bad).unwrap_err().to_string().starts_with("--allow "), "{bad}");
    }
    let bind = |text| {
        let bind = Bind::parse(text).unwrap();
        (bind.host.display().to_string(), bind.inside().display().to_string(), bind.read_only)
    };
    assert_eq!(bind("/data"), ("/data".into(), "/data".into(), false));
    assert_eq!(bind("/data:/in:ro"), ("/data".into(), "/in".into(), true));
    assert_eq!(bind("/data:ro"), ("/data".into(), "/data".into(), true));
    for bad in ["", "data", "/a:b", "/a:/b:/c", "/a:/b/../c", "/a:/", "/"] {
        assert!(Bind::parse(bad).unwrap_err().to_string().starts_with("--bind "), "{bad}");
    }
}

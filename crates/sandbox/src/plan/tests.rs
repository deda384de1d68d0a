use super::*;
use crate::policy::{Bind, preset};

pub(super) fn place() -> Place {
    Place {
        group: "sess_1".to_owned(),
        workspace: "/srv/project".into(),
        layer: "/srv/layer".into(),
        scratch: "/dev/shm/scratch".into(),
        given: "/srv/given".into(),
        hidden: Vec::new(),
    }
}

fn host() -> Host {
    Host { landlock: 6, ..Host::default() }
}

#[test]
fn the_hosts_network_is_not_shown_where_its_abstract_sockets_cannot_be_kept_away() {
    let full = Policy { network: Network::Full, ..preset("full-access").unwrap() };
    assert!(plan(&full, &host(), &place()).is_ok());
    let older = Host { landlock: 5, ..host() };
    let refusal = plan(&full, &older, &place()).unwrap_err();
    assert!(refusal.to_string().contains("abstract names"), "{refusal}");
    assert!(plan(&preset("full-access").unwrap(), &older, &place()).is_ok());
}

#[test]
fn nothing_is_started_where_kernels_cannot_be_closed_to_others() {
    let missing = check::Missing { what: "no ptrace".to_owned(), remedy: "ask".to_owned() };
    let host = Host { tracing_missing: Some(missing.clone()), ..host() };
    let refusal = plan(&preset("read-only").unwrap(), &host, &place()).unwrap_err();
    assert_eq!(refusal, Refusal::Tracing(missing));
}

#[test]
fn where_another_spelling_finds_the_same_file_nothing_is_hidden_by_its_name() {
    let host = Host { letter_case: LetterCase::Ignored, ..host() };
    let refused = |name: &str, place: &Place| {
        plan(&preset(name).unwrap(), &host, place).err().map(|refusal| refusal.to_string())
    };
    for name in ["development", "agent-safe"] {
        let why = refused(name, &place()).unwrap();
        assert!(why.contains("takes `.ENV` for `.env`"), "{why}");
    }
    let with_sessions = Place { hidden: vec!["/srv/project/.sessions".into()], ..place() };
    for name in ["read-only", "full-access", "view-only"] {
        assert_eq!(refused(name, &place()), None);
        let why = refused(name, &with_sessions).unwrap();
        assert!(why.contains("--sessions-dir"), "{why}");
    }
}

#[test]
fn programs_are_told_of_the_systems_certificates_where_rules_hide_those_that_they_bring() {
    let host = Host { certificates: Some("/etc/ssl/cert.pem"), ..host() };
    let told = |name: &str| {
        let plan = plan(&preset(name).unwrap(), &host, &place()).unwrap();
        plan.locations.iter().any(|(name, _)| *name == "SSL_CERT_FILE")
    };
    let all = ["development", "agent-safe", "view-only", "read-only", "full-access"];
    assert_eq!(all.map(told), [true, true, true, false, false]);
}

#[test]
fn what_is_bound_into_the_workspace_passes_by_no_rule() {
    let bound = |name: &str, read_only: bool| {
        let bind = Bind { host: "/x".into(), inside: Some("/workspace/sub".into()), read_only };
        let policy = Policy { binds: vec![bind], ..preset(name).unwrap() };
        plan(&policy, &host(), &place()).map(drop)
    };
    assert_eq!(bound("full-access", false), Ok(()));
    assert_eq!(bound("read-only", true), Ok(()));
    for (name, read_only) in
        [("read-only", false), ("view-only", true), ("development", true), ("agent-safe", false)]
    {
        assert!(matches!(bound(name, read_only), Err(Refusal::Path { .. })), "{name}");
    }
}

#[test]
fn root_writes_to_layers_alone_unless_something_of_the_host_is_writable() {
    let host = Host { is_owned: true, ..host() };
    let bind = |read_only| Bind { host: "/x".into(), inside: None, read_only };
    for name in ["full-access", "read-only", "development"] {
        let is = |change: &dyn Fn(&mut Policy)| {
            let mut policy = Policy { root: true, ..preset(name).unwrap() };
            change(&mut policy);
            plan(&policy, &host, &place()).unwrap().is_root_in_layers()
        };
        assert!(is(&|_| {}), "{name}");
        assert!(is(&|policy| policy.binds = vec![bind(true)]), "{name}");
        assert!(!is(&|policy| policy.root = false), "{name}");
        if name != "read-only" {
            assert!(!is(&|policy| policy.files = FileMode::Direct), "{name}");
        }
        assert!(!is(&|policy| policy.binds = vec![bind(true), bind(false)]), "{name}");
    }
}

#[test]
fn users_inside_are_those_of_a_system() {
    assert_eq!(Ids::One.users(1000, 7), [(1000, 7, 1)]);
    let range = |same| Others { outside: 5000, count: 100, same };
    assert_eq!(range(None).extents(0, 7), [(0, 7, 1), (1, 5000, 100)]);
    let extents = range(Some(42)).extents(0, 7);
    assert_eq!(extents, [(0, 7, 1), (1, 5000, 41), (42, 42, 1), (43, 5042, 58)]);
    assert_eq!(range(Some(1)).extents(0, 7), [(0, 7, 1), (1, 1, 1), (2, 5001, 99)]);
}

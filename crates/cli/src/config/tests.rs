//! Which of several layers wins for a setting.

use super::setting::{ALL, Form, Setting};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Returns a value of a setting that differs from those of other layers, and its form in
/// the environment and in the file.
fn written(form: Form, layer: u64) -> (Vec<String>, String, String) {
    let plain = |text: String| {
        let quoted = format!("{text:?}");
        (vec![text.clone()], text, quoted)
    };
    match form {
        Form::Address => plain(format!("127.0.0.{}:1", layer + 1)),
        Form::Choice(words) => plain(words[layer as usize % words.len()].to_owned()),
        Form::Number => {
            let text = (layer + 1).to_string();
            (vec![text.clone()], text.clone(), text)
        }
        Form::Size => plain(format!("{}KiB", layer + 1)),
        Form::Time => plain(format!("{}s", layer + 1)),
        Form::Url => plain(format!("http://host{layer}")),
        Form::Saves | Form::Store => plain(format!("s3://bucket{layer}/x")),
        Form::Path | Form::Policy => plain(format!("/p{layer}")),
        Form::Names => {
            let (a, b) = (format!("a{layer}"), format!("b{layer}"));
            (vec![a.clone(), b.clone()], format!("{a}, {b}"), format!("[{a:?}, {b:?}]"))
        }
        Form::Paths => {
            let (a, b) = (format!("/a{layer}"), format!("/b{layer}"));
            (vec![a.clone(), b.clone()], format!("{a}:{b}"), format!("[{a:?}, {b:?}]"))
        }
    }
}

/// Which layers have a value for a setting.
#[derive(Clone, Copy, Debug)]
struct Said {
    flag: bool,
    variable: bool,
    file: bool,
}

fn listing(said: &[(&'static Setting, Said)]) -> Listing {
    let directory = tempfile::tempdir().unwrap();
    let mut flags = Flags::default();
    let mut environment = BTreeMap::new();
    let mut file = String::new();
    for (setting, said) in said {
        if said.flag {
            flags.given.push((setting.name, written(setting.form, 0).0));
        }
        if said.variable {
            environment.insert(setting.variable(), OsString::from(written(setting.form, 1).1));
        }
        if said.file {
            file += &format!("{} = {}\n", setting.name, written(setting.form, 2).2);
        }
    }
    let path = directory.path().join("c.toml");
    std::fs::write(&path, file).unwrap();
    flags.config = Some(path);
    let told = (Some(PathBuf::from("/s")), Source::Flag("sessions-dir"));
    Listing::read(told, &flags, &|name| environment.get(name).cloned()).unwrap()
}

proptest! {
    #![proptest_config(sessile_testkit::cases(256))]
    #[test]
    fn flags_come_before_the_environment_before_the_file_before_the_default(
        bits in proptest::collection::vec((any::<bool>(), any::<bool>(), any::<bool>()), ALL.len())
    ) {
        let said: Vec<(&Setting, Said)> = ALL
            .iter()
            .zip(bits)
            .map(|(setting, (flag, variable, file))| (*setting, Said { flag, variable, file }))
            .collect();
        let listing = listing(&said);
        let mut line = 0;
        for ((setting, found), (_, said)) in listing.rows.iter().zip(&said) {
            line += usize::from(said.file);
            let (layer, from) = match said {
                Said { flag: true, .. } => (0, format!("flag --{}", setting.name)),
                Said { variable: true, .. } => (1, format!("environment {}", setting.variable())),
                Said { file: true, .. } => (2, format!("c.toml line {line}")),
                Said { .. } => {
                    prop_assert_eq!(&found.from, &Source::Default, "{}", setting.name);
                    continue;
                }
            };
            prop_assert_eq!(&found.texts, &written(setting.form, layer).0, "{}", setting.name);
            prop_assert!(found.from.to_string().ends_with(&from), "{}", found.from);
        }
    }
}

fn read(
    flags: &Flags,
    environment: &[(&str, &str)],
    told: Option<&Path>,
) -> anyhow::Result<Listing> {
    let told = match told {
        Some(path) => (Some(path.to_owned()), Source::Flag("sessions-dir")),
        None => (None, Source::Default),
    };
    Listing::read(told, flags, &|name| {
        environment.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
    })
}

#[test]
fn a_wrong_variable_is_named() {
    let wrong = [("SESSILE_MAX_SESSIONS", "many")];
    let told = read(&Flags::default(), &wrong, Some(Path::new("/none"))).unwrap_err();
    assert_eq!(format!("{told:#}"), "SESSILE_MAX_SESSIONS: \"many\" is not a number from 1 on");
}

#[test]
fn an_empty_variable_says_nothing() {
    let empty = [("SESSILE_LISTEN", ""), ("SESSILE_CONFIG", "")];
    let listing = read(&Flags::default(), &empty, Some(Path::new("/none"))).unwrap();
    assert_eq!(listing.config().unwrap().listen_from, Source::Default);
}

#[test]
fn the_file_in_the_sessions_directory_must_be_private() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE);
    std::fs::write(&path, "auth = \"none\"\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let refused = read(&Flags::default(), &[], Some(directory.path())).unwrap_err();
    assert!(refused.to_string().contains("is not private"), "{refused}");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let listing = read(&Flags::default(), &[], Some(directory.path())).unwrap();
    assert_eq!(listing.config().unwrap().auth, Auth::None);
    assert_eq!(listing.file, Some((path, Source::Default)));
}

#[test]
fn a_named_file_may_say_where_sessions_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    std::fs::write(&path, "sessions-dir = \"s\"\n").unwrap();
    let flags = Flags { config: Some(path), ..Flags::default() };
    let listing = read(&flags, &[], None).unwrap();
    assert_eq!(listing.sessions_dir.0, directory.path().join("s"));
    let listing = read(&flags, &[], Some(Path::new("/other"))).unwrap();
    assert_eq!(listing.sessions_dir.0, Path::new("/other"));
}

#[test]
fn what_does_not_go_together_is_refused() {
    let refused = |given: &[(&'static str, &str)]| {
        let given = given.iter().map(|(name, text)| (*name, vec![(*text).to_owned()])).collect();
        let flags = Flags { config: None, given };
        let listing = read(&flags, &[], Some(Path::new("/none"))).unwrap();
        listing.config().unwrap_err().to_string()
    };
    assert!(refused(&[("auth", "none"), ("listen", "0.0.0.0:1")]).contains("loopback only"));
    assert!(refused(&[("tls-cert", "/c")]).contains("needs tls-key"));
    assert!(refused(&[("tls-key", "/c")]).contains("needs tls-cert"));
    assert!(refused(&[("request-timeout", "0")]).contains("is zero"));
}

#[test]
fn a_model_that_could_not_be_asked_is_refused_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    let refused = |line: &str| {
        let start = "[[model]]\nformat = \"messages\"\nmodel = \"m\"\n";
        std::fs::write(&path, format!("{start}{line}\n")).unwrap();
        let flags = Flags { config: Some(path.clone()), ..Flags::default() };
        let listing = read(&flags, &[], None);
        format!("{:#}", listing.and_then(|listing| listing.config()).unwrap_err())
    };
    for (line, part) in [
        ("base-url = \"http://\"", "names no server"),
        ("ca-file = \"absent.pem\"", "absent.pem"),
        ("ca-file = \"c.toml\"", "has no certificates in it"),
        ("headers = { \"x y\" = \"1\" }", "is not the name of a header"),
        ("headers = { x = \"a\\nb\" }", "cannot stand in a header"),
    ] {
        let told = refused(line);
        assert!(told.contains(part) && told.contains("line 4"), "{line}: {told}");
    }
}

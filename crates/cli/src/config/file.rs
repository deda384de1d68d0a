//! The settings as keys of a TOML file.

use super::setting::{ALL, Form, SESSIONS_DIR, Setting};
use super::{model, pool};
use crate::confinement;
use anyhow::{Context, bail};
use sessile_server::{Model, Pool};
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    entries: Vec<Entry>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) models: Vec<Model>,
}

/// A key with its values, as checked texts.
#[derive(Debug)]
struct Entry {
    name: &'static str,
    line: usize,
    texts: Vec<String>,
}

impl File {
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the configuration {}", path.display()))?;
        Self::parse(path, &text)
    }

    pub(crate) fn parse(path: &Path, text: &str) -> anyhow::Result<Self> {
        let shown = path.display();
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            anyhow::anyhow!("{shown} line {line}: {}", error.message())
        })?;
        let (mut entries, mut pools, mut models) = (Vec::new(), Vec::new(), Vec::new());
        for (key, value) in table.get_ref() {
            if key.get_ref() == pool::KEY {
                pools = pool::pools(value, path, text)?;
                continue;
            }
            if key.get_ref() == model::KEY {
                models = model::models(value, path, text)?;
                continue;
            }
            let line = line_of(text, key.span().start);
            let entry = Entry::of(key.get_ref(), value, line)
                .with_context(|| format!("{shown} line {line}: {}", key.get_ref()))?;
            entries.push(entry);
        }
        Ok(Self { path: path.to_owned(), entries, pools, models })
    }

    /// Returns the values of a setting, and their line. Paths are relative to the file's
    /// directory.
    pub(crate) fn of(&self, setting: &Setting) -> Option<(Vec<String>, usize)> {
        let entry = self.entries.iter().find(|entry| entry.name == setting.name)?;
        let here = self.path.parent().unwrap_or_else(|| Path::new("."));
        let from_here = |text: &String| here.join(text).to_string_lossy().into_owned();
        let texts = match setting.form {
            Form::Path | Form::Paths => entry.texts.iter().map(from_here).collect(),
            Form::Policy => {
                let named = |text: &String| match confinement::is_preset(text) {
                    true => text.clone(),
                    false => from_here(text),
                };
                entry.texts.iter().map(named).collect()
            }
            Form::Address
            | Form::Choice(_)
            | Form::Number
            | Form::Size
            | Form::Time
            | Form::Url
            | Form::Saves
            | Form::Store
            | Form::Names => entry.texts.clone(),
        };
        Some((texts, entry.line))
    }
}

impl Entry {
    fn of(key: &str, value: &Spanned<DeValue<'_>>, line: usize) -> anyhow::Result<Self> {
        let setting = known(key)?;
        let texts = texts(setting.form, value.get_ref())?;
        for text in &texts {
            setting.form.check(text).map_err(anyhow::Error::msg)?;
        }
        Ok(Self { name: setting.name, line, texts })
    }
}

fn known(key: &str) -> anyhow::Result<&'static Setting> {
    let named = |name: &str| {
        ALL.iter().chain(&[SESSIONS_DIR]).copied().find(|setting| setting.name == name)
    };
    match (named(key), named(&key.replace('_', "-"))) {
        (Some(setting), _) => Ok(setting),
        (None, Some(meant)) => bail!("there is no such key; write {}", meant.name),
        (None, None) => bail!("there is no such key; `sessile config` shows all that there are"),
    }
}

/// Returns a value's texts, if its type fits.
fn texts(form: Form, value: &DeValue<'_>) -> anyhow::Result<Vec<String>> {
    match form {
        Form::Names | Form::Paths => match value.as_array() {
            Some(items) => {
                items.iter().map(|item| string(item.get_ref(), "a list of strings")).collect()
            }
            None => bail!("a list of strings is wanted, not {}", article(value)),
        },
        Form::Number | Form::Size | Form::Time => match (value.as_integer(), form) {
            (Some(number), _) => Ok(vec![number.to_string()]),
            (None, Form::Number) => bail!("a number is wanted, not {}", article(value)),
            (None, _) => Ok(vec![string(value, "a string or a number")?]),
        },
        Form::Address
        | Form::Choice(_)
        | Form::Url
        | Form::Saves
        | Form::Store
        | Form::Policy
        | Form::Path => Ok(vec![string(value, "a string")?]),
    }
}

pub(super) fn string(value: &DeValue<'_>, wanted: &str) -> anyhow::Result<String> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => bail!("{wanted} is wanted, not {}", article(value)),
    }
}

pub(super) fn article(value: &DeValue<'_>) -> String {
    let kind = value.type_str();
    let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {kind}")
}

pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::super::setting;
    use super::*;

    fn parse(text: &str) -> anyhow::Result<File> {
        File::parse(Path::new("/etc/sessile.toml"), text)
    }

    #[test]
    fn keys_are_read_with_their_lines() {
        let file = parse(
            "# ours\nlisten = \"[::1]:80\"\n\nmax-sessions = 3\nworkspace-root = [\"a\", \"/b\"]\n\
             idle-timeout = 90\nmax-body = \"1MiB\"\nallow-host = []\n",
        )
        .unwrap();
        let of = |setting| file.of(setting);
        assert_eq!(of(setting::LISTEN), Some((vec!["[::1]:80".to_owned()], 2)));
        assert_eq!(of(setting::MAX_SESSIONS), Some((vec!["3".to_owned()], 4)));
        let roots = vec!["/etc/a".to_owned(), "/b".to_owned()];
        assert_eq!(of(setting::WORKSPACE_ROOT), Some((roots, 5)));
        assert_eq!(of(setting::IDLE_TIMEOUT), Some((vec!["90".to_owned()], 6)));
        assert_eq!(of(setting::MAX_BODY), Some((vec!["1MiB".to_owned()], 7)));
        assert_eq!(of(setting::ALLOW_HOST), Some((vec![], 8)));
        assert_eq!(of(setting::AUTH), None);
    }

    #[test]
    fn pools_are_read() {
        let file = parse(
            "max-sessions = 3\n[[pool]]\nname = \"data\"\nshell = \"python3\"\ncode = \"import os\"\n\
             cwd = \"work\"\nenv = { A = \"1\" }\nready = 4\n[[pool]]\nname = \"plain\"\n",
        )
        .unwrap();
        let [data, plain] = &file.pools[..] else { panic!("{file:?}") };
        assert_eq!((data.name.as_str(), data.shell.as_str()), ("data", "python3"));
        assert_eq!(data.code.as_deref(), Some("import os"));
        assert_eq!(data.cwd.as_deref(), Some(Path::new("/etc/work")));
        assert_eq!(data.env["A"], "1");
        assert_eq!((data.ready, plain.ready), (4, 0));
        assert_eq!((plain.shell.as_str(), &plain.code, &plain.cwd), ("bash", &None, &None));
    }

    #[test]
    fn what_is_wrong_is_told_with_file_line_and_key() {
        for (text, told) in [
            (
                "listen = 7377",
                "/etc/sessile.toml line 1: listen: a string is wanted, not an integer",
            ),
            (
                "\nlisten = \"x\"",
                "/etc/sessile.toml line 2: listen: \"x\" is not an address and port, such as 127.0.0.1:7377",
            ),
            (
                "max-sessions = \"3\"",
                "/etc/sessile.toml line 1: max-sessions: a number is wanted, not a string",
            ),
            (
                "max-sessions = -3",
                "/etc/sessile.toml line 1: max-sessions: \"-3\" is not a number from 1 on",
            ),
            (
                "allow-host = \"a\"",
                "/etc/sessile.toml line 1: allow-host: a list of strings is wanted, not a string",
            ),
            (
                "allow-host = [1]",
                "/etc/sessile.toml line 1: allow-host: a list of strings is wanted, not an integer",
            ),
            (
                "\n\nport = 1",
                "/etc/sessile.toml line 3: port: there is no such key; `sessile config` shows all that there are",
            ),
            (
                "max_sessions = 1",
                "/etc/sessile.toml line 1: max_sessions: there is no such key; write max-sessions",
            ),
            (
                "[limits]\nsessions = 1",
                "/etc/sessile.toml line 1: limits: there is no such key; `sessile config` shows all that there are",
            ),
        ] {
            assert_eq!(format!("{:#}", parse(text).unwrap_err()), told);
        }
        for (text, told) in [
            ("[pool]\nname = \"a\"", "line 1: pool: write it as [[pool]], once for each"),
            ("[[pool]]\nshell = \"bash\"", "line 1: pool: name is missing"),
            ("\n[[pool]]\nname = 1", "line 3: pool: name: a string is wanted, not an integer"),
            (
                "[[pool]]\nname = \"sess_1\"",
                "line 2: pool: name: \"sess_1\" cannot be a pool's name; use 1 to 64 letters, digits and -_., without sess_ in front",
            ),
            (
                "[[pool]]\nname = \"a\"\ncount = 3",
                "line 3: pool: count: there is no such key; there are name, shell, code, file, cwd, env and ready",
            ),
            (
                "[[pool]]\nname = \"a\"\nready = 65",
                "line 3: pool: ready: a number from 0 to 64 is wanted",
            ),
            (
                "[[pool]]\nname = \"a\"\nready = \"2\"",
                "line 3: pool: ready: a number from 0 to 64 is wanted",
            ),
            (
                "[[pool]]\nname = \"a\"\n[[pool]]\nname = \"a\"",
                "line 3: pool: there are two called \"a\"",
            ),
            (
                "[[pool]]\nname = \"a\"\nenv = [\"A=1\"]",
                "line 3: pool: env: a table of strings is wanted, not an array",
            ),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert_eq!(error, format!("/etc/sessile.toml {told}"));
        }
        for (text, line) in
            [("listen", 1), ("\nlog = \"text\"\nlog = \"json\"\n", 3), ("a = \"", 1)]
        {
            let told = format!("{:#}", parse(text).unwrap_err());
            assert!(told.starts_with(&format!("/etc/sessile.toml line {line}: ")), "{told}");
        }
    }
}

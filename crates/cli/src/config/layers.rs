//! Precedence of settings: flags, then the environment, then the file, then defaults.

use super::file::File;
use super::flags::Flags;
use super::setting::{Form, Setting};
use anyhow::Context;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// Where a value comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Source {
    Flag(&'static str),
    Environment(String),
    File {
        path: PathBuf,
        line: usize,
    },
    #[default]
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "flag --{name}"),
            Self::Environment(variable) => write!(f, "environment {variable}"),
            Self::File { path, line } => write!(f, "file {} line {line}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The effective values of a setting, and where they come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) texts: Vec<String>,
    pub(crate) from: Source,
}

impl Found {
    pub(crate) fn one(&self) -> Option<&str> {
        self.texts.first().map(String::as_str)
    }

    pub(crate) fn value(&self, form: Form) -> Value {
        match form {
            Form::Names | Form::Paths => json!(self.texts),
            Form::Number => json!(self.one().and_then(|text| text.parse::<u64>().ok())),
            Form::Address
            | Form::Choice(_)
            | Form::Size
            | Form::Time
            | Form::Url
            | Form::Saves
            | Form::Store
            | Form::Policy
            | Form::Path => {
                json!(self.one())
            }
        }
    }
}

/// A lookup in the environment: an argument, so that tests can have their own.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

pub(crate) struct Layers<'a> {
    pub(crate) flags: &'a Flags,
    pub(crate) environment: Environment<'a>,
    pub(crate) file: Option<&'a File>,
}

impl Layers<'_> {
    /// Returns the values of the first layer that has the setting. Lists are not joined:
    /// the stronger one applies alone.
    pub(crate) fn find(&self, setting: &Setting) -> anyhow::Result<Found> {
        let mut found = match self.said(setting)? {
            Some(found) => found,
            None => Found {
                texts: setting.default.map(str::to_owned).into_iter().collect(),
                from: Source::Default,
            },
        };
        match setting.form {
            Form::Path | Form::Paths => {
                for text in &mut found.texts {
                    *text = std::path::absolute(&*text)?.to_string_lossy().into_owned();
                }
            }
            Form::Address
            | Form::Choice(_)
            | Form::Number
            | Form::Size
            | Form::Time
            | Form::Url
            | Form::Saves
            | Form::Store
            | Form::Policy
            | Form::Names => {}
        }
        Ok(found)
    }

    fn said(&self, setting: &Setting) -> anyhow::Result<Option<Found>> {
        if let Some(texts) = self.flags.of(setting) {
            let from = Source::Flag(setting.name);
            return Ok(Some(Found { texts: texts.to_vec(), from }));
        }
        let variable = setting.variable();
        let value = (self.environment)(&variable).filter(|value| !value.is_empty());
        if let Some(value) = value {
            let texts = from_environment(setting.form, value)
                .map_err(anyhow::Error::msg)
                .context(variable.clone())?;
            return Ok(Some(Found { texts, from: Source::Environment(variable) }));
        }
        let said = self.file.and_then(|file| Some((file, file.of(setting)?)));
        Ok(said.map(|(file, (texts, line))| Found {
            texts,
            from: Source::File { path: file.path.clone(), line },
        }))
    }
}

fn from_environment(form: Form, value: OsString) -> Result<Vec<String>, String> {
    let text = value.into_string().map_err(|_| "it is not UTF-8".to_owned())?;
    let texts: Vec<String> = match form.separator() {
        Some(separator) => {
            let parts = text.split(separator).map(str::trim);
            parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
        }
        None => vec![text],
    };
    for text in &texts {
        form.check(text)?;
    }
    Ok(texts)
}

//! The settings as flags of a command.

use super::setting::{ALL, Setting};
use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use std::path::PathBuf;

const CONFIG: &str = "config";

/// The given flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    /// The file to read settings from.
    pub(crate) config: Option<PathBuf>,
    pub(crate) given: Vec<(&'static str, Vec<String>)>,
}

impl Flags {
    pub(crate) fn of(&self, setting: &Setting) -> Option<&[String]> {
        let found = self.given.iter().find(|(name, _)| *name == setting.name);
        found.map(|(_, texts)| texts.as_slice())
    }
}

fn flag(setting: &'static Setting) -> Arg {
    let check = |text: &str| setting.form.check(text).map(|()| text.to_owned());
    let (action, repeated) = match setting.form.is_list() {
        true => (ArgAction::Append, " (may be repeated)"),
        false => (ArgAction::Set, ""),
    };
    let default = match setting.default {
        Some(".") => " [default: the current one]".to_owned(),
        Some(text) => format!(" [default: {text}]"),
        None => String::new(),
    };
    Arg::new(setting.name)
        .long(setting.name)
        .value_name(setting.value)
        .value_parser(ValueParser::new(check))
        .action(action)
        .help(format!("{}{repeated}{default}", setting.help))
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new(CONFIG)
            .long(CONFIG)
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("Read settings from this file [default: sessile.toml in the sessions directory]");
        command.arg(config).args(ALL.iter().map(|setting| flag(setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let config = matches.get_one::<PathBuf>(CONFIG).cloned();
        let given = ALL.iter().filter_map(|setting| {
            let texts = matches.get_many::<String>(setting.name)?;
            Some((setting.name, texts.cloned().collect()))
        });
        Ok(Self { config, given: given.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

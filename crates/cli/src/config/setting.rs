//! The server's settings, as data: their names, forms and defaults.

use sessile_protocol::{parse_duration, parse_size};
use std::net::SocketAddr;

/// One setting. Its name is the flag's and the file's key; the variable is `SESSILE_` and
/// the name in capitals.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    /// The default; none for a setting that is then off or empty.
    pub(crate) default: Option<&'static str>,
    /// The name of a value in the help.
    pub(crate) value: &'static str,
    pub(crate) help: &'static str,
}

/// The form of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Address,
    Choice(&'static [&'static str]),
    /// At least one.
    Number,
    Size,
    Time,
    Url,
    /// Whether sessions are saved: `no`, `yes`, or a URL.
    Saves,
    /// Where saves are kept: a URL.
    Store,
    /// The sandbox of sessions: a preset, or a policy file.
    Policy,
    Path,
    /// Several, separated by `,` in the environment.
    Names,
    /// Several, separated by `:` in the environment.
    Paths,
}

impl Form {
    /// Whether it has several values.
    pub(crate) fn is_list(self) -> bool {
        self.separator().is_some()
    }

    /// Returns the separator of several values in the environment.
    pub(crate) fn separator(self) -> Option<char> {
        match self {
            Self::Names => Some(','),
            Self::Paths => Some(':'),
            Self::Address
            | Self::Choice(_)
            | Self::Number
            | Self::Size
            | Self::Time
            | Self::Url
            | Self::Saves
            | Self::Store
            | Self::Policy
            | Self::Path => None,
        }
    }

    /// Checks the form of one value; the error says what is wrong.
    pub(crate) fn check(self, text: &str) -> Result<(), String> {
        let outcome = match self {
            Self::Address => text.parse::<SocketAddr>().map(drop).map_err(|_| {
                format!("{text:?} is not an address and port, such as 127.0.0.1:7377")
            }),
            Self::Choice(words) if words.contains(&text) => Ok(()),
            Self::Choice(words) => Err(format!("{text:?} is not one of {}", words.join(", "))),
            Self::Number => match text.parse::<u32>() {
                Ok(1..) => Ok(()),
                Ok(0) | Err(_) => Err(format!("{text:?} is not a number from 1 on")),
            },
            Self::Size => parse_size(text).map(drop).map_err(|error| error.to_string()),
            Self::Time => parse_duration(text).map(drop).map_err(|error| error.to_string()),
            Self::Url if ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) => {
                Ok(())
            }
            Self::Url => Err(format!("{text:?} is not a URL that begins with http:// or https://")),
            Self::Saves if ["no", "yes"].contains(&text) => Ok(()),
            Self::Saves => {
                sessile_vault::check_url(text).map_err(|error| format!("{error}, or yes or no"))
            }
            Self::Store => sessile_vault::check_url(text).map_err(|error| error.to_string()),
            // Checked once the directory of the file is known.
            Self::Policy | Self::Path | Self::Names | Self::Paths => Ok(()),
        };
        if text.is_empty() { Err("it is empty".to_owned()) } else { outcome }
    }
}

impl Setting {
    /// Returns its variable in the environment.
    pub(crate) fn variable(&self) -> String {
        format!("SESSILE_{}", self.name.replace('-', "_").to_ascii_uppercase())
    }
}

macro_rules! settings {
    ($($constant:ident: $name:literal, $form:expr, $default:expr, $value:literal, $help:literal;)*) => {
        $(pub(crate) const $constant: &Setting = &Setting {
            name: $name, form: $form, default: $default, value: $value, help: $help,
        };)*

        /// All of them that are flags of `serve`, in the order of its help.
        pub(crate) const ALL: &[&Setting] = &[$($constant),*];
    };
}

settings! {
    LISTEN: "listen", Form::Address, Some("127.0.0.1:7377"), "ADDRESS",
        "Address and port; port 0 takes a free one";
    AUTH: "auth", Form::Choice(&["token", "none"]), Some("token"), "WHO",
        "Who may call: token (callers with a token) or none (everybody, on loopback only)";
    WORKSPACE_ROOT: "workspace-root", Form::Paths, Some("."), "DIR",
        "A directory that sessions may use";
    ALLOW_HOST: "allow-host", Form::Names, None, "NAME",
        "An additional host name of the server";
    ALLOW_ORIGIN: "allow-origin", Form::Names, None, "ORIGIN",
        "An origin whose pages may call from a browser, as https://name:port";
    ALLOW_ENV: "allow-env", Form::Names, None, "NAME",
        "An additional variable of the server's environment for its sessions; AWS_* for all that begin with AWS_, * for all";
    SANDBOX: "sandbox", Form::Policy, None, "PRESET|FILE",
        "Minimum sandbox of all sessions: a preset or a policy file";
    TLS_CERT: "tls-cert", Form::Path, None, "FILE",
        "Serve HTTPS with this certificate (PEM, with its chain)";
    TLS_KEY: "tls-key", Form::Path, None, "FILE",
        "The certificate's private key (PEM)";
    MAX_SESSIONS: "max-sessions", Form::Number, Some("1000"), "N",
        "Maximum number of live sessions";
    MAX_SESSIONS_PER_TOKEN: "max-sessions-per-token", Form::Number, Some("1000"), "N",
        "Maximum number of live sessions per token, except the owner's";
    MAX_QUEUE: "max-queue", Form::Number, Some("256"), "N",
        "Maximum number of queued runs per session, up to 256";
    MAX_STREAMS: "max-streams", Form::Number, Some("256"), "N",
        "Maximum number of concurrent event streams, WebSockets and downloads";
    MAX_CONNECTIONS: "max-connections", Form::Number, Some("1024"), "N",
        "Maximum number of connections";
    MAX_BODY: "max-body", Form::Size, Some("24MiB"), "SIZE",
        "Maximum size of a request's body";
    MAX_RESTORED: "max-restored", Form::Size, Some("1GiB"), "SIZE",
        "Maximum size of a restored session; 0: nothing is restored";
    MAX_OUTPUT: "max-output", Form::Size, Some("16MiB"), "SIZE",
        "Maximum bytes of each stream in an answer";
    REQUEST_TIMEOUT: "request-timeout", Form::Time, Some("30s"), "TIME",
        "Maximum silence of a client: in a TLS handshake, in a request, and between two requests";
    IDLE_TIMEOUT: "idle-timeout", Form::Time, Some("30m"), "TIME",
        "Default idle timeout of new sessions; 0: none";
    COMMAND_TIMEOUT: "command-timeout", Form::Time, Some("30s"), "TIME",
        "Default time limit for commands of new sessions; 0: none";
    DURABLE: "durable", Form::Saves, Some("no"), "WHERE",
        "Save new sessions in idle time by default: no, yes (on this disk), or a URL such as s3://bucket/prefix";
    STORE: "store", Form::Store, None, "URL",
        "A store for durable sessions, in addition to this disk. A request for the id of a stored session continues it here. Everybody who can write to the store is trusted";
    MCP_WAIT: "mcp-wait", Form::Time, Some("50s"), "TIME",
        "How long an MCP tool call waits for a run before it returns";
    LOG: "log", Form::Choice(&["text", "json"]), Some("text"), "FORMAT",
        "Log format on stderr: text or json";
    LOG_LEVEL: "log-level", Form::Choice(&["error", "warn", "info", "debug", "trace"]), Some("info"), "LEVEL",
        "Log level: error, warn, info, debug (each request) or trace";
    OTLP_ENDPOINT: "otlp-endpoint", Form::Url, None, "URL",
        "Send traces to this OpenTelemetry collector (OTLP over HTTP)";
}

/// Not only a flag of `serve`: all commands have it.
pub(crate) const SESSIONS_DIR: &Setting = &Setting {
    name: "sessions-dir",
    form: Form::Path,
    default: Some(".sessions"),
    value: "DIR",
    help: "Where sessions are kept",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_written_as_it_should_be() {
        for setting in ALL {
            if let Some(text) = setting.default {
                assert_eq!(setting.form.check(text), Ok(()), "{}", setting.name);
            }
        }
    }

    #[test]
    fn what_is_written_otherwise_is_refused() {
        for (setting, text) in [
            (LISTEN, "7377"),
            (LISTEN, "localhost:7377"),
            (AUTH, "tokens"),
            (MAX_SESSIONS, "0"),
            (MAX_SESSIONS, "-1"),
            (MAX_BODY, "much"),
            (IDLE_TIMEOUT, "soon"),
            (OTLP_ENDPOINT, "localhost:4318"),
            (TLS_CERT, ""),
        ] {
            assert!(setting.form.check(text).is_err(), "{} = {text:?}", setting.name);
        }
    }

    #[test]
    fn a_variable_is_the_name_in_capitals() {
        assert_eq!(MAX_SESSIONS_PER_TOKEN.variable(), "SESSILE_MAX_SESSIONS_PER_TOKEN");
    }
}

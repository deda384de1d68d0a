//! The variables of its keeper's environment that a session gets.

use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};

/// Names of variables; one that ends with `*` stands for all names with that prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inherited(Vec<String>);

/// Variables that programs need: paths, the user, the locale, and how to reach the network.
/// Keys and tokens are not among them, and proxy URLs lose the user and password that they
/// may have.
const USUAL: [&str; 34] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "HOSTNAME",
    "PWD",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TZ",
    "TMPDIR",
    "XDG_*",
    "LD_LIBRARY_PATH",
    "SESSILE_SESSIONS_DIR",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
];

impl Inherited {
    /// Returns the usual variables and these.
    #[must_use]
    pub fn usual_and(further: &[String]) -> Self {
        Self(USUAL.iter().map(|name| (*name).to_owned()).chain(further.iter().cloned()).collect())
    }

    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|known| match known.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == known,
        })
    }
}

impl Inherited {
    /// Returns the value that a session gets of a variable.
    #[must_use]
    pub fn value(&self, name: &OsStr, value: OsString) -> Option<OsString> {
        let name = name.to_str()?;
        let named = self.0.iter().filter(|known| match known.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == *known,
        });
        // A proxy variable that the user names as well keeps its credentials.
        match named.count() {
            0 => None,
            1 if name.to_ascii_lowercase().ends_with("_proxy") => {
                value.to_str().map(|value| without_user(value).into())
            }
            _ => Some(value),
        }
    }
}

/// Removes the user and password from a proxy's URL or `host:port`. A password may contain
/// any character.
fn without_user(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxys_password_is_not_inherited_unless_it_is_named() {
        let usual = Inherited::usual_and(&[]);
        let value = |inherited: &Inherited, name: &str, value: &str| {
            inherited.value(OsStr::new(name), value.into()).map(|v| v.into_string().unwrap())
        };
        for (given, left) in [
            ("http://me:hunter2@proxy:3128", "http://proxy:3128"),
            ("http://me:p@ss/w@proxy:3128/", "http://proxy:3128/"),
            ("me:hunter2@proxy:3128", "proxy:3128"),
            ("http://proxy:3128", "http://proxy:3128"),
        ] {
            for name in ["http_proxy", "HTTPS_PROXY", "all_proxy"] {
                assert_eq!(value(&usual, name, given).as_deref(), Some(left));
            }
        }
        assert_eq!(value(&usual, "PATH", "/a@b").as_deref(), Some("/a@b"));
        assert_eq!(value(&usual, "OPENAI_API_KEY", "x"), None);
        for named in ["http_proxy", "*"] {
            let all = Inherited::usual_and(&[named.to_owned()]);
            assert_eq!(value(&all, "http_proxy", "http://a:b@c").as_deref(), Some("http://a:b@c"));
        }
    }

    #[test]
    fn keys_are_not_inherited_unless_they_are_named() {
        let usual = Inherited::usual_and(&[]);
        for name in ["PATH", "HOME", "LC_ALL", "XDG_CONFIG_HOME", "https_proxy"] {
            assert!(usual.has(name), "{name}");
        }
        let secrets =
            ["AWS_SECRET_ACCESS_KEY", "SESSILE_TOKEN", "OPENAI_API_KEY", "", "LC", "Path"];
        for name in secrets {
            assert!(!usual.has(name), "{name}");
        }
        let more = Inherited::usual_and(&["AWS_*".to_owned(), "JAVA_HOME".to_owned()]);
        assert!(more.has("AWS_SECRET_ACCESS_KEY") && more.has("JAVA_HOME") && more.has("PATH"));
        assert!(!more.has("JAVA_HOME_2"));
        assert!(Inherited::usual_and(&["*".to_owned()]).has("ANYTHING"));
    }
}

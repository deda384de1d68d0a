//! Which variables of its keeper's environment a session has.

use serde::{Deserialize, Serialize};

/// Names, of which one that ends with `*` stands for all that begin so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inherited(Vec<String>);

/// What programs need to find their way: where things are, who they run as, how
/// to write and how to reach the network. Keys and tokens are not among them.
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
    /// The usual ones and these.
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

#[cfg(test)]
mod tests {
    use super::*;

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

//! The environment of programs inside: a short list of inherited variables, those of the
//! caller, and our own.

use super::{HOME, Net, Plan, User};
use crate::proxy;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Variables of the host's environment that are never secret.
const INHERITED: &[&str] =
    &["LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "TZ"];

/// Variables that are kept if they name the system's file of certificates: an administrator
/// has set them, because programs would not trust the network's own certificate otherwise.
const CERTIFICATES: &[&str] = &[
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
];

fn is_inherited(name: &OsStr, value: &OsStr, plan: &Plan) -> bool {
    let name = name.to_str().unwrap_or_default();
    let is_certificates = || plan.certificates.is_some_and(|file| value == file);
    INHERITED.contains(&name)
        || name.starts_with("LC_")
        || (CERTIFICATES.contains(&name) && is_certificates())
}

/// Returns the environment of kernels. `given` are the caller's own variables, which win.
#[must_use]
pub fn environment(
    host: impl Iterator<Item = (OsString, OsString)>,
    search: &OsStr,
    given: impl Iterator<Item = (OsString, OsString)>,
    plan: &Plan,
) -> BTreeMap<OsString, OsString> {
    let mut all: BTreeMap<OsString, OsString> =
        host.filter(|(name, value)| is_inherited(name, value, plan)).collect();
    let (name, home) = match plan.user {
        User::Agent => ("agent", HOME),
        User::Root => ("root", "/root"),
    };
    let own: [(&str, &OsStr); 6] = [
        ("PATH", search),
        ("HOME", home.as_ref()),
        ("USER", name.as_ref()),
        ("LOGNAME", name.as_ref()),
        ("SHELL", "/bin/bash".as_ref()),
        // A git that was built by hand looks elsewhere.
        ("GIT_CONFIG_SYSTEM", "/etc/gitconfig".as_ref()),
    ];
    all.extend(own.map(|(name, value)| (name.into(), value.into())));
    all.extend(plan.locations.iter().map(|(name, at)| ((*name).into(), at.into())));
    match &plan.net {
        Net::Proxied(hosts) => {
            all.extend(
                proxy::variables(hosts)
                    .into_iter()
                    .map(|(name, value)| (name.into(), value.into())),
            );
        }
        Net::Own | Net::Hosts => {}
    }
    all.extend(given);
    all
}

#[cfg(test)]
mod tests {
    use super::super::host::Host;
    use super::super::plan;
    use super::super::tests::place;
    use super::*;
    use crate::policy::{Network, Policy, preset};

    #[test]
    fn what_is_not_on_the_list_stays_outside_and_what_is_given_wins() {
        let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let host = [
            pair("AWS_SECRET", "s"),
            pair("LC_ALL", "C"),
            pair("TERM", "xterm"),
            pair("PIP_CERT", "/etc/ssl/cert.pem"),
            pair("CURL_CA_BUNDLE", "/home/me/private.pem"),
        ];
        let given = [pair("TERM", "dumb"), pair("STAGE", "test")];
        let policy =
            Policy { network: Network::Hosts(Vec::new()), ..preset("development").unwrap() };
        let file = "/etc/ssl/cert.pem";
        let machine = Host { certificates: Some(file), ..Host::default() };
        let plan = plan(&policy, &machine, &place()).unwrap();
        let search = OsStr::new("/usr/bin");
        let found = environment(host.into_iter(), search, given.into_iter(), &plan);
        let get = |name: &str| found.get(OsStr::new(name)).and_then(|value| value.to_str());
        assert_eq!(get("AWS_SECRET"), None);
        assert_eq!(get("LC_ALL"), Some("C"));
        assert_eq!(get("TERM"), Some("dumb"));
        assert_eq!(get("STAGE"), Some("test"));
        assert_eq!(get("HOME"), Some(HOME));
        assert_eq!(get("GIT_CONFIG_SYSTEM"), Some("/etc/gitconfig"));
        assert_eq!(get("https_proxy"), Some("http://127.0.0.1:3128"));
        assert_eq!(get("REQUESTS_CA_BUNDLE"), Some(file));
        assert_eq!((get("PIP_CERT"), get("CURL_CA_BUNDLE")), (Some(file), None));
    }
}

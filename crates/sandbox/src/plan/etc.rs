//! The configuration that programs need: names of users, certificates, locales,
//! name resolution. Nothing that may have a secret in it.

use super::host::{EtcEntry, Host};
use super::{AGENT, Access, HOME, HOSTNAME, Plan, Step, is_small};
use crate::policy::Network;
use std::path::{Path, PathBuf};

/// Shown as they are on the host, if they are there and everybody may read them.
pub(super) const SHOWN: &[&str] = &[
    // Which program is `editor`, `awk`, `python`.
    "alternatives",
    // Whom to trust. Not the keys beside the certificates.
    "ssl/certs",
    "ssl/cert.pem",
    "ssl/openssl.cnf",
    "ca-certificates",
    "ca-certificates.conf",
    "pki/tls/certs",
    "pki/tls/cert.pem",
    "pki/tls/openssl.cnf",
    "pki/ca-trust/extracted",
    "crypto-policies",
    // The loader's.
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    // Where and when this is.
    "localtime",
    "timezone",
    "locale.conf",
    "locale.alias",
    "default/locale",
    // What numbers of the network mean.
    "host.conf",
    "gai.conf",
    "protocols",
    "services",
    "rpc",
    "networks",
    "mime.types",
    "magic",
    // Shells and terminals.
    "bash.bashrc",
    "profile",
    "profile.d",
    "inputrc",
    "shells",
    "terminfo",
    "zsh",
    // What system this is.
    "os-release",
    "debian_version",
    "lsb-release",
    "redhat-release",
    "fedora-release",
    "system-release",
    "alpine-release",
    "arch-release",
    // Languages and fonts.
    "fonts",
    "perl",
    "python3",
    "java",
    "R",
];

/// With a network, as the host resolves names.
pub(super) const RESOLUTION: &[&str] = &["resolv.conf", "hosts"];

impl Plan {
    pub(super) fn etc(&mut self, host: &Host, network: &Network) {
        let text = |name: &str, text: String| Step::Text {
            at: Path::new("/etc").join(name),
            text: text.into_bytes(),
        };
        self.steps.extend([
            text("passwd", passwd()),
            text("group", group()),
            text("nsswitch.conf", NSSWITCH.to_owned()),
            text("hostname", format!("{HOSTNAME}\n")),
            text("gitconfig", GIT.to_owned()),
        ]);
        match network {
            Network::Full => self.show(&host.resolution),
            Network::None | Network::Hosts(_) => {
                let hosts = format!("127.0.0.1\tlocalhost {HOSTNAME}\n::1\tlocalhost {HOSTNAME}\n");
                self.steps.push(text("hosts", hosts));
                let none = "# There are no name servers in here.\n".to_owned();
                self.steps.push(text("resolv.conf", none));
            }
        }
        let mounts = PathBuf::from("/proc/self/mounts");
        self.steps.push(Step::Link { at: "/etc/mtab".into(), to: mounts });
        self.show(&host.etc);
    }

    fn show(&mut self, entries: &[EtcEntry]) {
        for entry in entries {
            let at = Path::new("/etc").join(&entry.name);
            self.steps.push(match &entry.text {
                Some(text) if is_small(text.len() as u64) => Step::Text { at, text: text.clone() },
                Some(_) | None => {
                    Step::Tree { host: entry.path.clone(), at, access: Access::ReadOnly }
                }
            });
        }
    }
}

fn passwd() -> String {
    format!(
        "root:x:0:0:root:/root:/bin/sh\n\
         agent:x:{AGENT}:{AGENT}:agent:{HOME}:/bin/bash\n\
         nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
    )
}

fn group() -> String {
    format!("root:x:0:\ntty:x:5:\nagent:x:{AGENT}:\nnogroup:x:65534:\n")
}

/// An index that was written outside has the user's number there, and git would
/// read every file anew because it is another inside. Size and date are enough.
/// And a workspace of another user is the one that the session was given.
const GIT: &str = "[core]\n\tcheckStat = minimal\n[safe]\n\tdirectory = /workspace\n\
\tdirectory = /workspace/*\n";

/// Files and DNS only: other sources would be asked over sockets of the host.
const NSSWITCH: &str = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n\
networks: files\nprotocols: files\nservices: files\nrpc: files\n";

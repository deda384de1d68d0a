//! The configuration that programs need: names of users, certificates, locales, name
//! resolution. Nothing that may contain a secret.

use super::host::{EtcEntry, Host};
use super::root::of_system;
use super::{AGENT, Access, HOME, HOSTNAME, Place, Plan, Step, User, is_small};
use crate::policy::{Level, Network, Policy};
use crate::rules::Rules;
use std::path::{Path, PathBuf};

/// Shown as they are on the host, if they exist and everybody may read them. `*` stands for
/// any characters of a name. Left out is what may have passwords in it: Maven's
/// `settings.xml`, the pools of PHP, `pip.conf`, `npmrc`.
pub(super) const SHOWN: &[&str] = &[
    // Which program is `editor`, `awk`, `python`.
    "alternatives",
    // Trusted certificates, not the keys beside them.
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
    // For the dynamic loader.
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    // Time zone and locale.
    "localtime",
    "timezone",
    "locale.conf",
    "locale.alias",
    "default/locale",
    // Names of network numbers.
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
    // The name and version of the system.
    "os-release",
    "debian_version",
    "lsb-release",
    "redhat-release",
    "fedora-release",
    "system-release",
    "alpine-release",
    "arch-release",
    // Languages and their tools.
    "perl",
    "python3*",
    "java*",
    "maven/m2.conf",
    "maven/toolchains.xml",
    "maven/logging",
    "php/*/cli",
    "php/*/mods-available",
    "php.d",
    "dotnet",
    "mono",
    "julia",
    "scala",
    "R",
    "OpenCL",
    "openmpi*",
    "gdb",
    // Documents, pictures and fonts.
    "fonts",
    "X11/rgb.txt",
    "ImageMagick-*",
    "ghostscript",
    "groff",
    "manpath.config",
    "papersize",
    "sgml",
    "texmf",
    "xml",
    // Editors.
    "emacs",
    "nanorc",
    "vim",
];

/// Where systems have all trusted certificates in one file. All are shown.
pub(super) const CERTIFICATES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Files that package installers also read, and what `su` and the like need: by name, as
/// files of other services could have passwords in them.
pub(super) const SHOWN_TO_ROOT: &[&str] = &[
    "debconf.conf",
    "adduser.conf",
    "deluser.conf",
    "login.defs",
    "ucf.conf",
    "pam.d/chfn",
    "pam.d/chpasswd",
    "pam.d/chsh",
    "pam.d/common-account",
    "pam.d/common-auth",
    "pam.d/common-password",
    "pam.d/common-session",
    "pam.d/common-session-noninteractive",
    "pam.d/login",
    "pam.d/newusers",
    "pam.d/other",
    "pam.d/passwd",
    "pam.d/postlogin",
    "pam.d/runuser",
    "pam.d/runuser-l",
    "pam.d/su",
    "pam.d/su-l",
    "pam.d/system-auth",
    "security/limits.conf",
    "security/pam_env.conf",
    // What a new home begins with.
    "skel",
];

/// With a network: the host's name resolution.
pub(super) const RESOLUTION: &[&str] = &["resolv.conf", "hosts"];

impl Plan {
    pub(super) fn etc(&mut self, host: &Host, network: &Network, place: &Place) {
        let text = |name: &str, text: String| Step::Text {
            at: Path::new("/etc").join(name),
            text: text.into_bytes(),
        };
        let (mut users, mut groups) = (passwd(), group());
        match self.user {
            User::Agent => {}
            User::Root => {
                users.push_str(&of_programs(&host.users, &users));
                groups.push_str(&of_programs(&host.groups, &groups));
                self.steps.push(text("shadow", locked(&users)));
                self.steps.push(text("gshadow", locked(&groups)));
            }
        }
        self.steps.extend([
            text("passwd", users),
            text("group", groups),
            text("nsswitch.conf", NSSWITCH.to_owned()),
            text("hostname", format!("{HOSTNAME}\n")),
            text("gitconfig", GIT.to_owned()),
        ]);
        match network {
            Network::Full => self.show(&host.resolution, place),
            Network::None | Network::Hosts(_) => {
                let hosts = format!("127.0.0.1\tlocalhost {HOSTNAME}\n::1\tlocalhost {HOSTNAME}\n");
                self.steps.push(text("hosts", hosts));
                let none = "# There are no name servers in here.\n".to_owned();
                self.steps.push(text("resolv.conf", none));
            }
        }
        let mounts = PathBuf::from("/proc/self/mounts");
        self.steps.push(Step::Link { at: "/etc/mtab".into(), to: mounts });
        self.show(&host.etc, place);
        if self.user == User::Root {
            self.show(&host.etc_of_root, place);
        }
    }

    /// Python packages (`pip` and `requests` in a virtual environment, `httpx`, `grpc`) bring
    /// trusted certificates in files of the workspace that are called like keys. Where the
    /// rules hide these, programs are told to use the system's.
    pub(super) fn tell_of_certificates(&mut self, policy: &Policy) {
        const BROUGHT: &[u8] = b"venv/lib/python3/site-packages/certifi/cacert.pem";
        const VARIABLES: [&str; 3] =
            ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"];
        if Rules::new(policy).level_of(BROUGHT) < Level::Read
            && let Some(file) = self.certificates
        {
            self.locations.extend(VARIABLES.map(|name| (name, file.into())));
        }
    }

    fn show(&mut self, entries: &[EtcEntry], place: &Place) {
        for entry in entries {
            let at = Path::new("/etc").join(&entry.name);
            let host = entry.path.clone();
            self.steps.push(match (&entry.text, self.user) {
                // A copy, so that it can be replaced.
                (Some(text), User::Root) => Step::Text { at, text: text.clone() },
                (Some(text), User::Agent) if is_small(text.len() as u64) => {
                    Step::Text { at, text: text.clone() }
                }
                (None, User::Root) if entry.is_directory => of_system(host, at, place),
                (Some(_) | None, User::Agent | User::Root) => {
                    Step::Tree { host, at, access: Access::ReadOnly }
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

/// The first id of people; lower ones belong to programs.
pub(super) const PEOPLE: u32 = 1000;

/// Returns the users or groups of a system that belong to its programs: packages expect
/// them. Without members, and without passwords.
fn of_programs(listed: &str, there: &str) -> String {
    let is_there = |name: &str| there.lines().any(|line| line.split(':').next() == Some(name));
    let entries = listed.lines().filter_map(|line| {
        let mut fields: Vec<&str> = line.split(':').collect();
        let number: u32 = fields.get(2)?.parse().ok()?;
        if number == 0 || number >= PEOPLE || is_there(fields[0]) {
            return None;
        }
        fields[1] = "x";
        // The members of a group.
        if let [_, _, _, members] = &mut fields[..] {
            *members = "";
        }
        Some(fields.join(":") + "\n")
    });
    entries.collect()
}

/// Returns a shadow file without passwords.
fn locked(listed: &str) -> String {
    let fields = if listed.contains(":/") { ":*:19000:0:99999:7:::\n" } else { ":*::\n" };
    let names = listed.lines().filter_map(|line| line.split(':').next());
    names.map(|name| format!("{name}{fields}")).collect()
}

/// An index that was written outside has the user's id there, which differs inside, so
/// git would read every file anew. Size and date are enough. The workspace is trusted,
/// even if another user owns it.
const GIT: &str = "[core]\n\tcheckStat = minimal\n[safe]\n\tdirectory = /workspace\n\
\tdirectory = /workspace/*\n";

/// Files and DNS only: other sources would use sockets of the host.
const NSSWITCH: &str = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n\
networks: files\nprotocols: files\nservices: files\nrpc: files\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_programs_come_along_and_people_do_not() {
        let host = "root:$6$x:0:0::/root:/bin/sh\nman:$6$y:6:12::/var:/bin/sh\nann:x:1001:1001::/home/ann:/bin/sh\n\
                    nobody:x:65534:65534::/:/bin/sh\nbad\n";
        assert_eq!(of_programs(host, &passwd()), "man:x:6:12::/var:/bin/sh\n");
        let groups = "root:x:0:\ntty:x:5:ann\nmail:x:8:ann,bob\nann:x:1001:\n";
        assert_eq!(of_programs(groups, &group()), "mail:x:8:\n");
        assert_eq!(locked("man:x:6:12::/var:/bin/sh\n"), "man:*:19000:0:99999:7:::\n");
        assert_eq!(locked("mail:x:8:\n"), "mail:*::\n");
    }
}

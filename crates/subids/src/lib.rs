//! The range of user ids that an administrator has given to an ordinary user (subuid(5)).
//! With it, a user can be many users in a namespace, and handle the files of these users.
//!
//! Only root may map more than one id into a namespace. `newuidmap` and `newgidmap` do so
//! for others, after a check of `/etc/subuid` and `/etc/subgid`. They have to run outside
//! of the namespace of the process that they map, so its parent calls them.

mod listed;
mod owner;

pub use owner::{Owner, remove_dir_all};

use rustix::process::Pid;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Number of ids that a range needs: all ids of a system, except root.
pub const WANTED: u32 = 65535;

/// Directories of the two programs. The search path is not used: callers may have another one.
const PLACES: &[&str] =
    &["/usr/bin", "/bin", "/usr/local/bin", "/run/wrappers/bin", "/run/current-system/sw/bin"];

/// A mapping of ids: the first inside, the first outside, and the count.
pub type Extent = (u32, u32, u32);

/// The range of one user, and the programs that map it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubIds {
    /// The first id outside; there are at least [`WANTED`].
    pub first_user: u32,
    pub first_group: u32,
    pub mappers: Mappers,
}

/// The programs that may map ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mappers {
    users: PathBuf,
    groups: PathBuf,
}

/// Why no range is available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct NoRange {
    /// The text after "root inside has one user: ".
    pub what: String,
    /// The one command that an administrator should run.
    pub command: String,
}

impl SubIds {
    /// Returns the range of this process's user.
    ///
    /// # Errors
    /// With the reason why there is none.
    pub fn of_caller() -> Result<Self, NoRange> {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let user = rustix::process::geteuid().as_raw();
        let name = listed::name_of(user, &read("/etc/passwd"));
        let (users, groups) = (read("/etc/subuid"), read("/etc/subgid"));
        let who = (name.as_deref(), user);
        let range = |listed: &str| listed::range_of(who, listed, WANTED);
        match (range(&users), range(&groups), Mappers::find()) {
            (Some(first_user), Some(first_group), Some(mappers)) => {
                Ok(Self { first_user, first_group, mappers })
            }
            (users_range, groups_range, mappers) => {
                let has_range = users_range.is_some() && groups_range.is_some();
                let free = listed::free(&[&users, &groups], WANTED + 1);
                Err(missing(
                    &name.unwrap_or_else(|| user.to_string()),
                    has_range,
                    free,
                    mappers.as_ref(),
                ))
            }
        }
    }

    /// Maps the ids of a child of ours that has entered a user namespace.
    ///
    /// # Errors
    /// With the message of the program that refuses.
    pub fn map(&self, pid: Pid, users: &[Extent], groups: &[Extent]) -> io::Result<()> {
        call(&self.mappers.groups, pid, groups)?;
        call(&self.mappers.users, pid, users)
    }

    /// Returns the usual mapping: the caller is root inside, and the range has the other users.
    fn extents(&self) -> [[Extent; 2]; 2] {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        let of = |own: u32, first: u32| [(0, own, 1), (1, first, WANTED)];
        [of(user.as_raw(), self.first_user), of(group.as_raw(), self.first_group)]
    }
}

impl Mappers {
    fn find() -> Option<Self> {
        let find = |name: &str| {
            let mut there = PLACES.iter().map(|place| Path::new(place).join(name));
            there.find(|path| path.is_file())
        };
        Some(Self { users: find("newuidmap")?, groups: find("newgidmap")? })
    }
}

fn missing(name: &str, has_range: bool, free: Option<u32>, mappers: Option<&Mappers>) -> NoRange {
    let mut what = Vec::new();
    let mut commands = Vec::new();
    if mappers.is_none() {
        what.push("newuidmap and newgidmap are not installed".to_owned());
        commands.push(install_command());
    }
    if !has_range {
        what.push(format!(
            "{name} has no range of {} ids in /etc/subuid and /etc/subgid",
            WANTED + 1
        ));
        let first = free.unwrap_or(listed::FIRST);
        let range = format!("{first}-{}", first + WANTED);
        commands.push(format!("usermod --add-subuids {range} --add-subgids {range} {name}"));
    }
    NoRange { what: what.join(", and "), command: commands.join(" && ") }
}

/// Returns the command for this system's package manager.
fn install_command() -> String {
    let has = |path: &str| Path::new(path).exists();
    let command = if has("/usr/bin/dnf") {
        "dnf install shadow-utils"
    } else if has("/sbin/apk") {
        "apk add shadow-subids"
    } else if has("/usr/bin/pacman") {
        "pacman -S shadow"
    } else {
        "apt-get install uidmap"
    };
    command.to_owned()
}

fn call(program: &Path, pid: Pid, extents: &[Extent]) -> io::Result<()> {
    let mut command = Command::new(program);
    command.arg(pid.as_raw_nonzero().to_string());
    for (inside, outside, count) in extents {
        command.args([inside, outside, count].map(u32::to_string));
    }
    let called = command.stdin(Stdio::null()).stdout(Stdio::null()).output()?;
    if called.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&called.stderr);
    let said = said.lines().next().unwrap_or("it says nothing");
    Err(io::Error::other(format!("{} refuses: {said}", program.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_comes_with_one_command() {
        let mappers = || Mappers { users: "/u".into(), groups: "/g".into() };
        let told = missing("ann", false, Some(165_536), Some(&mappers()));
        assert_eq!(
            told.command,
            "usermod --add-subuids 165536-231071 --add-subgids 165536-231071 ann"
        );
        assert!(told.what.contains("ann has no range of 65536 ids"), "{told}");
        let told = missing("ann", true, None, None);
        assert!(told.what.contains("newuidmap") && !told.command.contains("usermod"), "{told}");
        let told = missing("ann", false, None, None);
        assert!(told.command.contains(" && usermod"), "{told}");
    }
}

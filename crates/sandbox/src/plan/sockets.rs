//! Unix sockets of the host's programs that have a path. A read-only mount does not
//! prevent connections to them: only write permission on the socket itself counts.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Returns the bound sockets, by the paths that they were bound to.
pub(super) fn of_host() -> Vec<PathBuf> {
    let table = std::fs::read("/proc/net/unix").unwrap_or_default();
    let mut paths = parse(&String::from_utf8_lossy(&table));
    // Something else may be there by now.
    let is_socket = |path: &PathBuf| {
        std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
    };
    paths.retain(is_socket);
    paths
}

/// Parses the table: number, references, protocol, flags, type, state, inode; then the
/// path, if there is one. Names that begin with `@` are abstract, without a file.
fn parse(table: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let mut rest = line;
        for _ in 0..7 {
            rest = rest.trim_start();
            rest = &rest[rest.find(' ')?..];
        }
        let path = Path::new(rest.strip_prefix(' ')?);
        path.is_absolute().then(|| path.to_owned())
    };
    let mut paths: Vec<PathBuf> = table.lines().skip(1).filter_map(path).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Returns their paths inside, for a directory that is shown at another path. A socket
/// that is itself what is shown was requested.
pub(super) fn below<'a>(
    sockets: &'a [PathBuf],
    shown: &'a Path,
    at: &'a Path,
) -> impl Iterator<Item = PathBuf> + 'a {
    let inside = sockets.iter().filter_map(move |socket| socket.strip_prefix(shown).ok());
    inside.filter(|below| !below.as_os_str().is_empty()).map(move |below| at.join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_with_a_path_are_found_where_they_are_shown() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 12345 /srv/p/run/a b.sock\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 12346 /srv/p/run/a b.sock\n\
            0000000000000000: 00000003 00000000 00000000 0001 03  9321\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 12347 @/srv/p/abstract\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 12348 relative\n\
            0000000000000000: 00000002 00000000 00000000 0002 01   348 /srv/project.sock\n";
        let sockets = parse(table);
        assert_eq!(sockets, ["/srv/p/run/a b.sock", "/srv/project.sock"].map(PathBuf::from));
        let below = |shown| -> Vec<PathBuf> {
            below(&sockets, Path::new(shown), Path::new("/workspace")).collect()
        };
        assert_eq!(below("/srv/p"), [PathBuf::from("/workspace/run/a b.sock")]);
        assert_eq!(below("/srv/p/run/a b.sock"), Vec::<PathBuf>::new());
    }
}

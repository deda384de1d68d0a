//! Access rights and limits.

use super::{ErrorCode, Service, ServiceError};
use crate::keepers::{Place, blocking};
use sessile_client::{NewSession, SavedTo};
use sessile_sandbox::Policy;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Limits. A request beyond one is refused with an error that names it.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Live sessions in total.
    pub sessions: u64,
    /// Live sessions that one token has made.
    pub sessions_per_token: u64,
    /// Runs that wait in one session.
    pub queue: u64,
    /// Bytes of a request's body.
    pub body: usize,
    /// Bytes of a saved session to restore, both compressed and decompressed; zero
    /// refuses all.
    pub restored: u64,
    /// Event streams and WebSockets at once.
    pub streams: usize,
    /// Bytes of each stream in an answer.
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 1000,
            sessions_per_token: 1000,
            queue: 256,
            body: 24 << 20,
            restored: 1 << 30,
            streams: 256,
            output: 16 << 20,
        }
    }
}

/// Defaults for new sessions. Zero: never.
#[derive(Clone, Debug)]
pub struct SessionDefaults {
    pub idle_timeout: Duration,
    pub command_timeout: Duration,
    /// Whether they are saved in idle time, and where to.
    pub durable: Option<SavedTo>,
    /// Where sessions that ask for it are saved, besides this disk.
    pub store: Option<String>,
    /// Their initial environment: that of the user who runs the server.
    pub environment: BTreeMap<String, String>,
    /// The minimum sandbox of all callers' sessions.
    pub sandbox: Option<Arc<Policy>>,
}

impl Default for SessionDefaults {
    fn default() -> Self {
        let usual = NewSession::default();
        Self {
            idle_timeout: Duration::from_millis(usual.idle_timeout_ms),
            command_timeout: Duration::from_millis(usual.command_timeout_ms),
            durable: None,
            store: None,
            environment: BTreeMap::new(),
            sandbox: None,
        }
    }
}

impl SessionDefaults {
    /// Applies the defaults to a session.
    pub(super) fn session(&self, new: NewSession) -> NewSession {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        NewSession {
            idle_timeout_ms: ms(self.idle_timeout),
            command_timeout_ms: ms(self.command_timeout),
            durable: self.durable.clone(),
            ..new
        }
    }

    /// Returns where a session's saves go. Callers say whether to save; the operator of
    /// the server, whose credentials are used, says where.
    pub(super) fn durability(&self, wanted: Option<bool>) -> Option<SavedTo> {
        match wanted {
            Some(true) => {
                let store = || self.store.clone().map_or(SavedTo::Disk, SavedTo::Store);
                Some(self.durable.clone().unwrap_or_else(store))
            }
            Some(false) => None,
            None => self.durable.clone(),
        }
    }
}

/// On whose behalf something is done.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// Name of the token, if there is one.
    pub(crate) token: Option<String>,
    /// Directories that the token is limited to.
    pub(crate) workspaces: Option<Vec<PathBuf>>,
    pub(crate) bounds: RequiredSandbox,
    pub(crate) moved: IfMoved,
}

/// What to do with a requested session that another machine has taken up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IfMoved {
    /// Take it up again: a client wants it here.
    #[default]
    TakeUp,
    /// Leave it there: a driver here has only not heard of the move yet.
    Leave,
}

/// The minimum sandbox of a caller's sessions.
#[derive(Clone, Debug, Default)]
pub(crate) enum RequiredSandbox {
    /// The server's own.
    #[default]
    Servers,
    /// The server's own, and this one.
    And(Arc<Policy>),
    /// None: the server itself manages its sessions, whatever they are.
    None,
}

impl Caller {
    /// Returns a caller who may do everything.
    pub(crate) fn owner() -> Self {
        Self {
            token: None,
            workspaces: None,
            bounds: RequiredSandbox::Servers,
            moved: IfMoved::TakeUp,
        }
    }

    /// Returns the same caller, who leaves sessions to the machine that has taken them up.
    pub(crate) fn staying(self) -> Self {
        Self { moved: IfMoved::Leave, ..self }
    }

    /// Returns the server as a caller, on its own behalf.
    pub(crate) fn server() -> Self {
        Self { bounds: RequiredSandbox::None, ..Self::owner() }
    }

    /// Returns the token's own bound; the outer `None` if the server's bound does not
    /// apply either.
    pub(super) fn own_bound(&self) -> Option<Option<&Arc<Policy>>> {
        match &self.bounds {
            RequiredSandbox::Servers => Some(None),
            RequiredSandbox::And(policy) => Some(Some(policy)),
            RequiredSandbox::None => None,
        }
    }

    pub(crate) fn may_use(&self, directory: &Path) -> bool {
        self.workspaces.as_ref().is_none_or(|all| is_within(directory, all))
    }

    /// Refuses sessions that the caller may not see. A session is as visible as the
    /// directory that it was started in, and a fork as its original. To other callers it
    /// does not exist.
    pub(super) fn admit(&self, place: &Place) -> Result<(), ServiceError> {
        if self.may_use(&place.home) {
            return Ok(());
        }
        let message = format!("Session {} not found", place.id);
        Err(ServiceError::new(ErrorCode::SessionNotFound, message))
    }
}

fn is_within(directory: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| directory.starts_with(root))
}

/// Returns the directories that are in both lists, or below both.
pub(super) fn common(some: &[PathBuf], others: &[PathBuf]) -> Vec<PathBuf> {
    let pairs = some.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
    let common =
        pairs.filter_map(|(one, other)| match (one.starts_with(other), other.starts_with(one)) {
            (true, _) => Some(one.clone()),
            (false, true) => Some(other.clone()),
            (false, false) => None,
        });
    common.collect()
}

pub(super) fn roots(given: &[PathBuf]) -> Result<Vec<PathBuf>, ServiceError> {
    given
        .iter()
        .map(|root| {
            let canonical = std::fs::canonicalize(root).ok().filter(|path| path.is_dir());
            canonical.ok_or_else(|| {
                let message = format!("workspace root {} is not a directory", root.display());
                ServiceError::new(ErrorCode::BadDirectory, message)
            })
        })
        .collect()
}

impl Service {
    /// Resolves a directory that came over the network, if the caller may use it.
    pub(crate) async fn directory(
        &self,
        caller: &Caller,
        given: Option<String>,
    ) -> Result<PathBuf, ServiceError> {
        self.admit(caller, move |roots, caller| directory(given.as_deref(), roots, caller)).await
    }

    /// Resolves a path in such a directory; the path itself need not exist.
    pub(super) async fn new_path(
        &self,
        caller: &Caller,
        given: String,
    ) -> Result<PathBuf, ServiceError> {
        self.admit(caller, move |roots, caller| new_path(&given, roots, caller)).await
    }

    /// Checks directories on a thread for blocking work.
    pub(super) async fn admit<T: Send + 'static>(
        &self,
        caller: &Caller,
        look: impl FnOnce(&[PathBuf], &Caller) -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let (roots, caller) = (self.roots.clone(), caller.clone());
        blocking(move || look(&roots, &caller)).await
    }
}

/// Resolves a directory that came over the network. Links and `..` are resolved before
/// the comparison, so none of them leads out.
pub(super) fn directory(
    given: Option<&str>,
    roots: &[PathBuf],
    caller: &Caller,
) -> Result<PathBuf, ServiceError> {
    let home = caller.workspaces.as_ref().and_then(|all| all.first()).or_else(|| roots.first());
    let base = home.cloned().unwrap_or_else(|| PathBuf::from("/"));
    let path = given.map_or(base.clone(), |given| base.join(given));
    let shown = given.unwrap_or(".");
    if shown.contains('\0') {
        return Err(ServiceError::new(ErrorCode::BadDirectory, "a path cannot contain NUL"));
    }
    let Ok(resolved) = std::fs::canonicalize(&path) else {
        // Does not reveal whether something exists outside.
        if !is_within(&path, roots) || path.components().any(|c| c.as_os_str() == "..") {
            return Err(outside(shown, &path, caller));
        }
        let message = format!("{shown} is not a directory; create it first");
        return Err(ServiceError::new(ErrorCode::BadDirectory, message));
    };
    if !is_within(&resolved, roots) || !caller.may_use(&resolved) {
        return Err(outside(shown, &resolved, caller));
    }
    if !resolved.is_dir() {
        let message = format!("{shown} is not a directory");
        return Err(ServiceError::new(ErrorCode::BadDirectory, message));
    }
    Ok(resolved)
}

/// Returns the refusal. The token is not always the reason: it may cover a directory that
/// the server itself may not use. The advice is in the message as well, because tools
/// show a model nothing else.
fn outside(shown: &str, path: &Path, caller: &Caller) -> ServiceError {
    let outside = "outside of the directories that may be used";
    let refused = |message| ServiceError::new(ErrorCode::Forbidden, message);
    if !caller.may_use(path) {
        return refused(format!("{shown} is {outside} with this token"));
    }
    let hint = "start the server with --workspace-root DIR for it";
    refused(format!("{shown} is {outside}; {hint}")).with_hint(hint)
}

/// Resolves a path in a permitted directory. The path itself need not exist: a file to be
/// written, a directory to be made. A link at its end is not followed.
pub(super) fn new_path(
    given: &str,
    roots: &[PathBuf],
    caller: &Caller,
) -> Result<PathBuf, ServiceError> {
    let path = Path::new(given);
    let is_plain = !given.contains('\0') && !given.ends_with('/') && !given.ends_with("/.");
    let Some(name) = path.file_name().filter(|_| is_plain) else {
        let message = format!("{given:?} does not end with a name");
        return Err(ServiceError::new(ErrorCode::BadDirectory, message));
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.map(|parent| parent.to_string_lossy());
    Ok(directory(parent.as_deref(), roots, caller)?.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(given: &str, roots: &[PathBuf], caller: &Caller) -> Option<ErrorCode> {
        directory(Some(given), roots, caller).err().map(|error| error.code)
    }

    #[test]
    fn no_path_leads_out_of_the_roots() {
        let outer = tempfile::tempdir().unwrap();
        let outer = std::fs::canonicalize(outer.path()).unwrap();
        let root = outer.join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir(outer.join("root-2")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        std::os::unix::fs::symlink(&outer, root.join("out")).unwrap();
        std::os::unix::fs::symlink(root.join("a"), root.join("in")).unwrap();
        let roots = [root.clone()];
        let anybody = Caller::owner();
        for path in ["..", "a/../..", "out", "out/root-2", "/", "/etc", "../root-2", "nope/../.."] {
            assert_eq!(code(path, &roots, &anybody), Some(ErrorCode::Forbidden), "{path}");
        }
        for path in ["file", "nope", "a\0"] {
            assert_eq!(code(path, &roots, &anybody), Some(ErrorCode::BadDirectory), "{path}");
        }
        for path in ["", ".", "a/b", "in/b", "a/../a", root.join("a").to_str().unwrap()] {
            assert_eq!(code(path, &roots, &anybody), None, "{path}");
        }
    }

    #[test]
    fn what_is_new_lies_in_a_directory_that_may_be_used() {
        let outer = tempfile::tempdir().unwrap();
        let outer = std::fs::canonicalize(outer.path()).unwrap();
        let root = outer.join("root");
        std::fs::create_dir_all(root.join("a")).unwrap();
        std::os::unix::fs::symlink(&outer, root.join("out")).unwrap();
        let roots = [root.clone()];
        let new_path = |given: &str| new_path(given, &roots, &Caller::owner());
        let code = |given: &str| new_path(given).err().map(|error| error.code);
        assert_eq!(new_path("new").unwrap(), root.join("new"));
        assert_eq!(new_path("a/../new").unwrap(), root.join("new"));
        // The link itself, not its target.
        assert_eq!(new_path("out").unwrap(), root.join("out"));
        for path in ["../new", "out/new", "/new", "/etc/new", "a/../../new"] {
            assert_eq!(code(path), Some(ErrorCode::Forbidden), "{path}");
        }
        for path in ["", ".", "..", "/", "a/..", "a/", "a/.", "no/new", "a/b\0"] {
            assert_eq!(code(path), Some(ErrorCode::BadDirectory), "{path}");
        }
    }

    #[test]
    fn what_two_lists_have_in_common_is_the_deeper_of_each_pair() {
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        let both = common(&paths(&["/a", "/b/c"]), &paths(&["/a/x", "/b", "/ab", "/z"]));
        assert_eq!(both, paths(&["/a/x", "/b/c"]));
    }

    #[test]
    fn a_token_is_held_to_its_workspaces() {
        let root = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(root.path()).unwrap();
        std::fs::create_dir_all(root.join("mine/x")).unwrap();
        std::fs::create_dir_all(root.join("theirs")).unwrap();
        let caller = Caller {
            token: Some("t".to_owned()),
            workspaces: Some(vec![root.join("mine")]),
            ..Caller::owner()
        };
        let roots = [root.clone()];
        assert_eq!(directory(None, &roots, &caller).unwrap(), root.join("mine"));
        assert_eq!(directory(Some("x"), &roots, &caller).unwrap(), root.join("mine/x"));
        assert_eq!(code("../theirs", &roots, &caller), Some(ErrorCode::Forbidden));
    }

    #[test]
    fn who_is_refused_a_directory_is_told_whose_bound_it_is() {
        let root = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(root.path()).unwrap();
        for name in ["ours", "mine", "theirs"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        let limited = Caller {
            token: Some("t".to_owned()),
            workspaces: Some(vec![root.join("ours"), root.join("mine")]),
            ..Caller::owner()
        };
        let roots = [root.join("ours")];
        let refused = |name: &str, caller: &Caller| {
            let path = root.join(name);
            let error = directory(path.to_str(), &roots, caller).unwrap_err();
            (error.message.contains("--workspace-root"), error.hint.contains("--workspace-root"))
        };
        assert_eq!(refused("mine", &Caller::owner()), (true, true));
        assert_eq!(refused("mine", &limited), (true, true), "its token covers it");
        assert_eq!(refused("theirs", &limited), (false, false));
    }
}

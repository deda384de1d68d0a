//! The place of the sessions that a call uses.

use crate::keepers::{blocking, lock};
use crate::service::{Caller, Limits, Service, ServiceError, SessionDefaults};
use sessile_client::Launcher;
use sessile_gateway::tool::Target;
use sessile_store::Sessions;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Workspaces may keep their own sessions, as for `sessile tool`, or all sessions may be
/// in one place.
#[derive(Debug)]
pub struct WorkspaceServices {
    /// Also for sessions that belong to no workspace.
    main: Arc<Service>,
    workspaces: Option<Workspaces>,
}

#[derive(Debug)]
struct Workspaces {
    launcher: Launcher,
    open: Mutex<HashMap<PathBuf, Arc<Service>>>,
}

impl WorkspaceServices {
    /// Keeps all sessions in the service's one place.
    #[must_use]
    pub fn one(service: Arc<Service>) -> Self {
        Self { main: service, workspaces: None }
    }

    /// Keeps each workspace's sessions in its own `.sessions`, and those without a
    /// workspace in that of the first root.
    ///
    /// # Errors
    /// When a root is not a directory.
    pub fn with_workspaces(
        launcher: Launcher,
        roots: &[PathBuf],
        defaults: SessionDefaults,
    ) -> Result<Self, ServiceError> {
        let first = roots.first().cloned().unwrap_or_else(|| PathBuf::from("/"));
        let sessions = Sessions::at(first.join(".sessions"), launcher.user().clone());
        let main = Service::new(sessions, launcher.clone(), roots, Limits::default())?
            .with_defaults(defaults);
        let workspaces = Workspaces { launcher, open: Mutex::default() };
        Ok(Self { main: Arc::new(main), workspaces: Some(workspaces) })
    }

    pub(super) fn main(&self) -> &Service {
        &self.main
    }

    /// Returns the service that has the workspace's session.
    pub(super) async fn service(
        &self,
        caller: &Caller,
        target: &Target,
    ) -> Result<Arc<Service>, ServiceError> {
        let Some(workspaces) = &self.workspaces else { return Ok(self.main.clone()) };
        let workspace = self.main.workspace_directory(caller, target).await?;
        if let Some(service) = lock(&workspaces.open).get(&workspace) {
            return Ok(service.clone());
        }
        let launcher = workspaces.launcher.clone();
        let sessions = Sessions::at(workspace.join(".sessions"), launcher.user().clone());
        let (roots, limits) = (self.main.roots().to_vec(), self.main.limits().clone());
        let service = blocking(move || Service::new(sessions, launcher, &roots, limits)).await?;
        let service = service.with_defaults(self.main.defaults().clone());
        // Another call may have been faster.
        let mut open = lock(&workspaces.open);
        Ok(open.entry(workspace).or_insert_with(|| Arc::new(service)).clone())
    }
}

//! The activity of the caller's sessions, sampled repeatedly.
//!
//! All watchers share one connection to each keeper, and simultaneous requests share one
//! sample; each watcher gets the CPU time since its own last sample. When there are no
//! more watchers, the connections are closed.

use super::{Caller, Service, ServiceError, confinement};
use crate::keepers::{blocking, lock};
use sessile_client::top::{Observation, Row, Sampler};
use sessile_sandbox::Policy;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// How long a sample can be reused: well below the shortest permitted interval.
const FRESH: Duration = Duration::from_millis(50);

/// Which sessions are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Live,
    /// Ended and lost ones, too.
    All,
}

pub(super) type SharedSampler = Mutex<Weak<Mutex<Sampler>>>;

#[derive(Debug)]
pub(crate) struct TopWatch {
    sampler: Arc<Mutex<Sampler>>,
    caller: Caller,
    bound: Option<Arc<Policy>>,
    scope: Scope,
    before: Option<Arc<Observation>>,
}

impl Service {
    pub(crate) fn watch_top(&self, caller: &Caller, scope: Scope) -> TopWatch {
        let mut shared = lock(&self.sampler);
        let sampler = shared.upgrade().unwrap_or_else(|| {
            let sampler =
                Sampler::new(self.keepers.sessions().clone(), sessile_store::Scope::Directory);
            let sampler = Arc::new(Mutex::new(sampler));
            *shared = Arc::downgrade(&sampler);
            sampler
        });
        let bound = self.bound(caller);
        TopWatch { sampler, caller: caller.clone(), bound, scope, before: None }
    }

    /// Takes one sample, with the CPU time used during `over`.
    pub(crate) async fn top(
        &self,
        caller: &Caller,
        scope: Scope,
        over: Duration,
    ) -> Result<Vec<Row>, ServiceError> {
        let mut watch = self.watch_top(caller, scope);
        watch.look().await?;
        tokio::time::sleep(over).await;
        watch.look().await
    }
}

impl TopWatch {
    pub(crate) async fn look(&mut self) -> Result<Vec<Row>, ServiceError> {
        let sampler = self.sampler.clone();
        let now = blocking(move || Ok(lock(&sampler).look_unless(FRESH)?)).await?;
        let before = self.before.replace(now.clone());
        let mut rows = now.rows(before.as_deref(), |m| {
            let is_within = |bound: &Arc<Policy>| {
                confinement::is_within(Some(bound), super::policy(m).as_ref())
            };
            self.caller.may_use(&m.work_dir) && self.bound.as_ref().is_none_or(is_within)
        });
        rows.retain(|row| match self.scope {
            Scope::All => true,
            Scope::Live => row.is_live(),
        });
        Ok(rows)
    }
}

//! The layers of sessions in a sandbox, for a caller who may use the session.

use super::{Caller, Service, ServiceError};
use crate::keepers::blocking;
use sessile_client::{LayerRefused, NoView, SessionLayer};
use sessile_layer::{Applied, Diff, Discarded, Force};
use sessile_protocol::SessionId;

/// Size limit of a diff's text in one answer.
const MOST_TEXT: usize = 16 << 20;

impl Service {
    async fn with_layer<T: Send + 'static>(
        &self,
        caller: &Caller,
        id: &SessionId,
        work: impl FnOnce(SessionLayer) -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let place = self.place(caller, id).await?;
        let user = self.keepers.sessions().user().root().to_owned();
        blocking(move || work(SessionLayer::of(&place.directory, &user)?)).await
    }

    pub(crate) async fn diff_layer(
        &self,
        caller: &Caller,
        id: &SessionId,
        paths: Vec<Vec<u8>>,
    ) -> Result<Diff, ServiceError> {
        self.with_layer(caller, id, move |layer| Ok(layer.diff(&paths, MOST_TEXT)?)).await
    }

    pub(crate) async fn apply_layer(
        &self,
        caller: &Caller,
        id: &SessionId,
        paths: Vec<Vec<u8>>,
        force: Force,
    ) -> Result<Applied, ServiceError> {
        self.refuse_to_apply(caller)?;
        self.with_layer(caller, id, move |layer| Ok(layer.apply(&paths, force)?)).await
    }

    pub(crate) async fn discard_layer(
        &self,
        caller: &Caller,
        id: &SessionId,
        paths: Vec<Vec<u8>>,
    ) -> Result<Discarded, ServiceError> {
        let asked = paths.clone();
        let discard = move |layer: SessionLayer| match layer.discard(&asked) {
            Err(LayerRefused::NoView(NoView)) => Ok(None),
            outcome => Ok(Some(outcome?)),
        };
        if let Some(discarded) = self.with_layer(caller, id, discard).await? {
            return Ok(discarded);
        }
        let place = self.place(caller, id).await?;
        self.start_for_files(caller, &place).await?;
        self.with_layer(caller, id, move |layer| Ok(layer.discard(&paths)?)).await
    }
}

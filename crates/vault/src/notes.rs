//! Notes about a session, beside its saves: small, and replaced as a whole.

use crate::place::Place;
use crate::{Note, VaultError};
use object_store::ObjectStoreExt;
use object_store::path::Path as Key;
use sessile_protocol::SessionId;

impl Place {
    fn note(&self, session: &SessionId, note: Note) -> Key {
        match note {
            Note::Record => self.prefix().clone().join(format!("{session}.json")),
            Note::Thread { epoch: 0 } => self.session(session).join("thread.jsonl"),
            Note::Thread { epoch } => self.session(session).join(format!("thread-{epoch}.jsonl")),
        }
    }

    pub(crate) async fn put_note(
        &self,
        session: &SessionId,
        note: Note,
        bytes: Vec<u8>,
    ) -> Result<(), VaultError> {
        let key = self.note(session, note);
        let put = self.store.put(&key, bytes.into()).await;
        put.map(|_| ()).map_err(|error| self.told.explain(&error))
    }

    pub(crate) async fn get_note(
        &self,
        session: &SessionId,
        note: Note,
    ) -> Result<Option<Vec<u8>>, VaultError> {
        let explain = |error| self.told.explain(&error);
        match self.store.get(&self.note(session, note)).await {
            Ok(found) => Ok(Some(found.bytes().await.map_err(explain)?.to_vec())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(explain(error)),
        }
    }
}

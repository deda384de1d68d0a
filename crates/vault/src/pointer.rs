//! The pointer: the last save of a session, the one before, and the machine that has the
//! session. Only decisions; nothing is read or written here.
//!
//! A save exists when the pointer names it. So a reader finds the old or the new one, and
//! never half of one.
//!
//! A machine that takes over a session increments its epoch. From then on saves of an
//! earlier epoch are refused, which fences off the previous machine.

use crate::VaultError;
use crate::names::Name;
use serde::{Deserialize, Serialize};
use sessile_protocol::RunNo;

/// Longer pointers are not ours: two saves take under 1 KiB.
pub(crate) const LONGEST: u64 = 64 * 1024;

const VERSION: u32 = 1;

/// The machine that has a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Number of times that the session was taken over from the store.
    pub epoch: u64,
    pub host: String,
    /// RFC 3339, UTC.
    pub since: String,
}

/// A save that is complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Save {
    /// The last run whose effects are in it.
    pub as_of_run: RunNo,
    /// RFC 3339, UTC.
    pub saved_at: String,
    /// In bytes.
    pub size: u64,
    /// BLAKE3 of the file, in hex.
    pub digest: String,
}

/// A save, and the object that it is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    #[serde(flatten)]
    pub(crate) save: Save,
    object: String,
}

impl Stored {
    pub(crate) fn new(save: Save, name: &Name) -> Self {
        Self { save, object: name.to_string() }
    }

    /// Returns the name of the object, if it has our form.
    pub(crate) fn name(&self) -> Result<Name, VaultError> {
        self.object.parse().map_err(|_| VaultError::Damaged("the pointer names no save of ours"))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pointer {
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) holder: Option<Holder>,
    pub(crate) latest: Stored,
    /// Kept for readers that still use it when the last one is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<Stored>,
}

impl Pointer {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, VaultError> {
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let damaged = |_| VaultError::Damaged("the pointer is not what we wrote");
        let head: Head = serde_json::from_slice(bytes).map_err(damaged)?;
        if head.version != VERSION {
            return Err(VaultError::Newer(head.version));
        }
        let pointer: Self = serde_json::from_slice(bytes).map_err(damaged)?;
        pointer.latest.name()?;
        Ok(pointer)
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        // Strings and numbers only, so this cannot fail.
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    fn epoch(&self) -> u64 {
        self.holder.as_ref().map_or(0, |holder| holder.epoch)
    }

    /// Checks that a machine that has the session in this epoch may write.
    pub(crate) fn admits(&self, epoch: u64) -> Result<(), VaultError> {
        match &self.holder {
            Some(holder) if holder.epoch > epoch => {
                Err(VaultError::Moved(Box::new(holder.clone())))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the pointer with this save as the last one, if it may become that: an
    /// earlier state of the session never replaces a later one, and a machine that has lost
    /// the session replaces none.
    pub(crate) fn advance(
        before: Option<&Self>,
        save: Stored,
        by: &Holder,
    ) -> Result<Self, VaultError> {
        if let Some(before) = before {
            before.admits(by.epoch)?;
        }
        let known = before.and_then(|before| before.holder.clone());
        let holder = known.filter(|known| (known.epoch, &known.host) == (by.epoch, &by.host));
        let previous = match before {
            Some(before) if before.latest.save.as_of_run > save.save.as_of_run => {
                return Err(VaultError::Superseded(Box::new(before.latest.save.clone())));
            }
            Some(before) => Some(before.latest.clone()),
            None => None,
        };
        let holder = Some(holder.unwrap_or_else(|| by.clone()));
        Ok(Self { version: VERSION, holder, latest: save, previous })
    }

    /// Returns the pointer of the session on another machine.
    pub(crate) fn taken(&self, host: &str, since: &str) -> Self {
        let (host, since) = (host.to_owned(), since.to_owned());
        let holder = Some(Holder { epoch: self.epoch() + 1, host, since });
        Self { holder, ..self.clone() }
    }

    /// Returns the pointer from before the session was taken in this epoch, if no other
    /// machine has it since.
    pub(crate) fn given_back(&self, epoch: u64, before: Option<Holder>) -> Self {
        let holder = if self.epoch() == epoch { before } else { self.holder.clone() };
        Self { holder, ..self.clone() }
    }

    /// Returns whether nothing needs an object any more. An object of a later run may be an
    /// upload in progress, and one of the same run may be another machine's, so these stay
    /// until there is a save of a later run.
    pub(crate) fn has_outlived(&self, name: &Name) -> bool {
        let named = |stored: &Stored| stored.name().is_ok_and(|kept| kept == *name);
        let kept = named(&self.latest) || self.previous.as_ref().is_some_and(named);
        !kept && name.run < self.latest.save.as_of_run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(run: u64, nonce: u64) -> Stored {
        let save = Save {
            as_of_run: RunNo(run),
            saved_at: "2026-11-16T06:00:00.000Z".to_owned(),
            size: 3,
            digest: "00".repeat(32),
        };
        Stored::new(save, &Name::new(RunNo(run), nonce))
    }

    fn holder(epoch: u64, host: &str) -> Holder {
        let since = "2026-11-16T06:00:00.000Z".to_owned();
        Holder { epoch, host: host.to_owned(), since }
    }

    fn at(run: u64, nonce: u64) -> Pointer {
        Pointer::advance(None, stored(run, nonce), &holder(0, "a")).unwrap()
    }

    #[test]
    fn whoever_has_lost_the_session_is_fenced_off() {
        let taken = at(3, 1).taken("b", "2026-11-16T07:00:00.000Z");
        assert_eq!(taken.latest, at(3, 1).latest);
        let refused = Pointer::advance(Some(&taken), stored(9, 2), &holder(0, "a")).unwrap_err();
        assert!(matches!(refused, VaultError::Moved(by) if by.host == "b" && by.epoch == 1));
        let next = Pointer::advance(Some(&taken), stored(4, 3), &holder(1, "b")).unwrap();
        assert_eq!(next.holder, taken.holder, "it has it since it was taken");
        let again = next.taken("a", "2026-11-16T08:00:00.000Z");
        assert!(again.admits(1).is_err() && again.admits(2).is_ok());
    }

    #[test]
    fn what_was_given_back_is_as_it_was() {
        let before = at(3, 1);
        let taken = before.taken("b", "2026-11-16T07:00:00.000Z");
        assert_eq!(taken.given_back(1, before.holder.clone()), before);
        let since = taken.taken("c", "2026-11-16T08:00:00.000Z");
        assert_eq!(since.given_back(1, before.holder), since, "another one has it by now");
    }

    #[test]
    fn a_later_run_replaces_an_earlier_one_and_never_the_other_way() {
        let by = holder(0, "a");
        let later = Pointer::advance(Some(&at(3, 1)), stored(5, 2), &by).unwrap();
        assert_eq!(later.latest.save.as_of_run, RunNo(5));
        let refused = Pointer::advance(Some(&later), stored(4, 3), &by).unwrap_err();
        assert!(matches!(refused, VaultError::Superseded(save) if save.as_of_run == RunNo(5)));
        assert!(Pointer::advance(Some(&later), stored(5, 4), &by).is_ok());
    }

    #[test]
    fn the_last_two_are_kept_and_what_may_be_coming() {
        let by = holder(0, "a");
        let pointer = Pointer::advance(Some(&at(3, 1)), stored(5, 2), &by).unwrap();
        let outlived = |run, nonce| pointer.has_outlived(&Name::new(RunNo(run), nonce));
        assert!(!outlived(5, 2), "the last");
        assert!(!outlived(3, 1), "the one before");
        assert!(!outlived(6, 9), "one that is coming");
        assert!(!outlived(5, 9), "another machine's of the same run");
        assert!(outlived(2, 0) && outlived(3, 7) && outlived(4, 7));
    }

    #[test]
    fn a_pointer_that_is_not_ours_is_refused() {
        let good = at(1, 1);
        assert_eq!(Pointer::read(&good.write()).unwrap(), good);
        let text = String::from_utf8(good.write()).unwrap();
        let elsewhere = text.replace("00000000000000000001-", "../../other/");
        for bad in ["", "{}", "[1]", "{\"version\":1}", &text[..40], &elsewhere] {
            let error = Pointer::read(bad.as_bytes()).unwrap_err();
            assert!(matches!(error, VaultError::Damaged(_)), "{bad}: {error}");
        }
        let newer = text.replace("\"version\": 1", "\"version\": 2");
        assert!(matches!(Pointer::read(newer.as_bytes()), Err(VaultError::Newer(2))));
    }
}

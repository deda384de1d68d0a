//! Saves in Azure's blob storage, as its emulator has it.

use sessile_protocol::{RunNo, SessionId};
use sessile_testkit::azure_server;
use sessile_vault::{Holder, NewSave, Vault, VaultError};
use std::path::Path;

fn session() -> SessionId {
    SessionId::from_random([1; 12])
}

fn new_save(run: u64, file: &Path) -> NewSave<'_> {
    let since = "2026-11-16T06:00:00.000Z".to_owned();
    let by = Holder { epoch: 0, host: "here".to_owned(), since };
    NewSave { as_of_run: RunNo(run), file, by, about: serde_json::json!({"name": "work"}) }
}

#[test]
fn saves_are_kept_in_azure_as_elsewhere() {
    let Some(server) = azure_server() else { return };
    let root = tempfile::tempdir().unwrap();
    let (file, got) = (root.path().join("file"), root.path().join("got"));
    let vault = Vault::open("az://saves/a b", &server.variables()).unwrap();
    assert_eq!(vault.latest(&session()).unwrap(), None);
    for run in [1, 2, 7] {
        std::fs::write(&file, format!("as of {run}")).unwrap();
        vault.put(&session(), &new_save(run, &file)).unwrap();
    }
    assert_eq!(vault.put(&session(), &new_save(6, &file)).unwrap_err().code(), "superseded");
    vault.get(&session(), &got).unwrap();
    assert_eq!(std::fs::read(&got).unwrap(), b"as of 7");

    let large: Vec<u8> =
        (0..25_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 9) as u8).collect();
    std::fs::write(&file, &large).unwrap();
    vault.put(&session(), &new_save(8, &file)).unwrap();
    vault.get(&session(), &got).unwrap();
    assert!(std::fs::read(&got).unwrap() == large);

    assert_eq!(vault.list().unwrap().len(), 1);
    vault.delete(&session()).unwrap();
    assert!(vault.list().unwrap().is_empty());

    let elsewhere = Vault::open("az://nowhere/x", &server.variables()).unwrap();
    assert_eq!(elsewhere.put(&session(), &new_save(1, &file)).unwrap_err().code(), "no_bucket");
    let mut wrong = server.variables();
    wrong.insert("AZURE_STORAGE_ACCOUNT_KEY".to_owned(), "d3Jvbmc=".to_owned());
    let wrong = Vault::open("az://saves/x", &wrong).unwrap();
    assert_eq!(wrong.latest(&session()).unwrap_err().code(), "denied");
}

#[test]
fn of_many_writers_at_once_the_latest_run_wins() {
    let Some(server) = azure_server() else { return };
    let root = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for run in 1..=6_u64 {
            let (file, variables) = (root.path().join(run.to_string()), server.variables());
            scope.spawn(move || {
                std::fs::write(&file, run.to_string()).unwrap();
                let vault = Vault::open("az://saves/race", &variables).unwrap();
                match vault.put(&session(), &new_save(run, &file)) {
                    Ok(_) | Err(VaultError::Superseded(_)) => {}
                    Err(error) => panic!("{run}: {error}"),
                }
            });
        }
    });
    let got = root.path().join("got");
    Vault::open("az://saves/race", &server.variables()).unwrap().get(&session(), &got).unwrap();
    assert_eq!(std::fs::read(&got).unwrap(), b"6");
}

//! Saves in a real object store with S3's interface.

use sessile_protocol::{RunNo, SessionId};
use sessile_testkit::{ObjectServer, object_server, shared_object_server, until};
use sessile_vault::{Holder, NewSave, Variables, Vault, VaultError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const BUCKET: &str = "s3://saves";

/// A prefix of the shared server's that is a test's own.
struct Bucket {
    server: &'static ObjectServer,
    url: String,
    vault: Vault,
    root: tempfile::TempDir,
}

impl Bucket {
    fn new(prefix: &str) -> Option<Self> {
        let server = shared_object_server()?;
        let url = format!("{BUCKET}/{prefix}");
        let vault = Vault::open(&url, &server.user()).unwrap();
        Some(Self { server, url, vault, root: tempfile::tempdir().unwrap() })
    }

    fn file(&self, content: &[u8]) -> PathBuf {
        let path = self.root.path().join("file");
        std::fs::write(&path, content).unwrap();
        path
    }

    fn put(&self, run: u64, content: &[u8]) -> Result<(), VaultError> {
        self.vault.put(&session(1), &new_save(run, &self.file(content))).map(|_| ())
    }

    fn get(&self) -> Result<Vec<u8>, VaultError> {
        let to = self.root.path().join("got");
        self.vault.get(&session(1), &to)?;
        Ok(std::fs::read(to).unwrap())
    }
}

fn session(n: u8) -> SessionId {
    SessionId::from_random([n; 12])
}

fn noise(length: u32) -> Vec<u8> {
    (0..length).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn new_save(run: u64, file: &Path) -> NewSave<'_> {
    let since = "2026-11-16T06:00:00.000Z".to_owned();
    let by = Holder { epoch: 0, host: "here".to_owned(), since };
    NewSave { as_of_run: RunNo(run), file, by, about: serde_json::json!({"name": "work"}) }
}

#[test]
fn saves_are_put_got_listed_and_deleted() {
    let Some(bucket) = Bucket::new("basic/a b") else { return };
    assert_eq!(bucket.vault.latest(&session(1)).unwrap(), None);
    assert!(bucket.vault.list().unwrap().is_empty());
    for run in [1, 2, 7] {
        bucket.put(run, format!("as of {run}").as_bytes()).unwrap();
        assert_eq!(bucket.get().unwrap(), format!("as of {run}").as_bytes());
    }
    bucket.vault.put(&session(2), &new_save(3, &bucket.file(b"another"))).unwrap();
    let kept = bucket.vault.list().unwrap();
    let runs: Vec<u64> = kept.iter().map(|k| k.latest.as_ref().unwrap().as_of_run.0).collect();
    assert_eq!(runs, [7, 3]);
    bucket.vault.delete(&session(1)).unwrap();
    assert_eq!(bucket.vault.latest(&session(1)).unwrap(), None);
    assert_eq!(bucket.get().unwrap_err().code(), "not_found");
    assert_eq!(bucket.vault.list().unwrap().len(), 1);
}

#[test]
fn a_save_of_many_parts_is_the_same_when_it_is_read() {
    let Some(bucket) = Bucket::new("large") else { return };
    let content = noise(27_000_000);
    bucket.put(1, &content).unwrap();
    assert!(bucket.get().unwrap() == content);
    let latest = bucket.vault.latest(&session(1)).unwrap().unwrap();
    assert_eq!(latest.size, 27_000_000);
    assert_eq!(latest.digest, blake3::hash(&content).to_hex().as_str());
}

#[test]
fn of_many_writers_at_once_the_latest_run_wins() {
    let Some(bucket) = Bucket::new("race") else { return };
    bucket.put(1, b"1").unwrap();
    std::thread::scope(|scope| {
        for run in 2..=8_u64 {
            let (url, server) = (&bucket.url, bucket.server);
            let file = bucket.root.path().join(run.to_string());
            scope.spawn(move || {
                std::fs::write(&file, run.to_string()).unwrap();
                let vault = Vault::open(url, &server.user()).unwrap();
                match vault.put(&session(1), &new_save(run, &file)) {
                    Ok(_) | Err(VaultError::Superseded(_)) => {}
                    Err(error) => panic!("{run}: {error}"),
                }
            });
        }
    });
    assert_eq!(bucket.get().unwrap(), b"8");
    assert_eq!(bucket.put(7, b"late").unwrap_err().code(), "superseded");
}

/// What the race above rests on, and what not every server has.
#[tokio::test]
async fn the_server_keeps_the_conditions_of_writes() {
    use object_store::{ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
    let Some(server) = shared_object_server() else { return };
    let builder = object_store::aws::AmazonS3Builder::new().with_bucket_name("saves");
    let store = server.user().into_iter().fold(builder, |builder, (name, value)| {
        builder.with_config(name.to_lowercase().parse().unwrap(), value)
    });
    let store = store.build().unwrap();
    let key = object_store::path::Path::from("conditions/x");
    let put = async |mode: PutMode| {
        let options = PutOptions { mode, ..PutOptions::default() };
        object_store::ObjectStore::put_opts(&store, &key, "x".into(), options).await
    };
    let first = put(PutMode::Create).await.unwrap();
    put(PutMode::Create).await.unwrap_err();
    store.put(&key, "changed".into()).await.unwrap();
    let stale = UpdateVersion { e_tag: first.e_tag, version: first.version };
    let error = put(PutMode::Update(stale)).await.unwrap_err();
    assert!(matches!(error, object_store::Error::Precondition { .. }), "{error}");
    let now = store.head(&key).await.unwrap();
    let fresh = UpdateVersion { e_tag: now.e_tag, version: now.version };
    put(PutMode::Update(fresh)).await.unwrap();
}

#[test]
fn wrong_credentials_and_buckets_are_told() {
    let Some(bucket) = Bucket::new("wrong") else { return };
    bucket.put(1, b"old").unwrap();
    let put = |url: &str, variables: &Variables| {
        let vault = Vault::open(url, variables).unwrap();
        vault.put(&session(1), &new_save(2, &bucket.file(b"new"))).unwrap_err()
    };
    let error = put(&bucket.url, &bucket.server.variables(("user-key", "wrong")));
    assert_eq!(error.code(), "denied", "{error}");
    assert!(error.to_string().contains("SignatureDoesNotMatch"), "{error}");
    let error = put(&bucket.url, &bucket.server.variables(("nobody", "wrong")));
    assert_eq!(error.code(), "denied", "{error}");
    let error = put("s3://no-such-bucket/x", &bucket.server.user());
    assert_eq!(error.code(), "no_bucket", "{error}");
    assert_eq!(bucket.get().unwrap(), b"old");
}

#[test]
fn a_server_that_is_down_is_told_within_seconds() {
    let Some(mut server) = object_server() else { return };
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    std::fs::write(&file, "old").unwrap();
    let vault = Vault::open(BUCKET, &server.user()).unwrap();
    vault.put(&session(1), &new_save(1, &file)).unwrap();
    server.kill();
    let since = Instant::now();
    let error = vault.put(&session(1), &new_save(2, &file)).unwrap_err();
    assert_eq!(error.code(), "unreachable", "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
    assert!(since.elapsed() < Duration::from_secs(15), "{:?}", since.elapsed());
    server.restart();
    // It accepts calls before all of its parts have found each other.
    let latest = until("the store", || vault.latest(&session(1)).ok()).unwrap();
    assert_eq!(latest.as_of_run, RunNo(1));
    until("a new save", || vault.put(&session(1), &new_save(2, &file)).ok());
}

#[test]
fn no_such_host_is_told() {
    let variables = [
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("AWS_ENDPOINT_URL", "http://no-such-host.invalid:1"),
        ("AWS_ALLOW_HTTP", "true"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let error = Vault::open(BUCKET, &variables).unwrap().latest(&session(1)).unwrap_err();
    assert_eq!(error.code(), "unreachable", "{error}");
}

#[test]
fn of_two_machines_that_take_a_session_up_one_has_it() {
    let Some(bucket) = Bucket::new("taken") else { return };
    bucket.put(1, b"1").unwrap();
    let taken: Vec<u64> = std::thread::scope(|scope| {
        let take = |host: &'static str| {
            let (url, server) = (&bucket.url, bucket.server);
            let to = bucket.root.path().join(host);
            scope.spawn(move || {
                let vault = Vault::open(url, &server.user()).unwrap();
                vault.take(&session(1), host, &to).unwrap().epoch
            })
        };
        let both = [take("a"), take("b")];
        both.into_iter().map(|taker| taker.join().unwrap()).collect()
    });
    assert_eq!(taken.iter().max(), Some(&2), "{taken:?}");
    assert_ne!(taken[0], taken[1]);
    assert_eq!(bucket.put(2, b"2").unwrap_err().code(), "session_moved");
    let file = bucket.file(b"2");
    for epoch in [1, 2] {
        let by = Holder { epoch, host: "a or b".to_owned(), since: String::new() };
        let put = bucket.vault.put(&session(1), &NewSave { by, ..new_save(2, &file) });
        assert_eq!(put.is_ok(), epoch == 2, "{put:?}");
    }
}

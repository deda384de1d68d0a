//! The location of a store: a URL and the settings from the environment.

use crate::VaultError;
use crate::error::ErrorContext;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use sessile_protocol::SessionId;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Environment variables, as the tools of the stores read them.
pub type Variables = BTreeMap<String, String>;

/// A server that is down is reported within seconds: four attempts, the last about two
/// seconds after the first.
const RETRIES: usize = 3;
const RETRY_WINDOW: Duration = Duration::from_secs(60);
const CONNECTING: Duration = Duration::from_secs(5);

/// Timeout of one request. The longest is a part of 8 MiB: 70 kB a second is enough for that.
const REQUEST: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) store: Arc<dyn ObjectStore>,
    prefix: Key,
    pub(crate) told: ErrorContext,
    /// The directory, if the store is on this machine's disk.
    pub(crate) directory: Option<PathBuf>,
}

impl Place {
    pub(crate) fn open(text: &str, variables: &Variables) -> Result<Self, VaultError> {
        let (kind, url) = parse(text)?;
        match kind {
            Kind::Disk => Self::local(text, &url),
            Kind::S3 => Self::remote(text, &url, variables, &S3, s3),
            Kind::Gcs => Self::remote(text, &url, variables, &GCS, gcs),
            Kind::Azure => Self::remote(text, &url, variables, &AZURE, azure),
        }
    }

    fn local(text: &str, url: &Url) -> Result<Self, VaultError> {
        let bad = |why: String| VaultError::BadUrl { url: text.to_owned(), why };
        let directory =
            url.to_file_path().map_err(|()| bad("it is not the path of a directory".to_owned()))?;
        let prefix = Key::from_absolute_path(&directory).map_err(|error| bad(error.to_string()))?;
        // A reported save has to survive a power cut.
        let store = LocalFileSystem::new().with_fsync(true);
        let told = ErrorContext {
            place: text.to_owned(),
            container: "directory",
            hint: "",
            has_credentials: true,
        };
        Ok(Self { store: Arc::new(store), prefix, told, directory: Some(directory) })
    }

    fn remote(
        text: &str,
        url: &Url,
        variables: &Variables,
        service: &Service,
        build: fn(&Url, &Variables) -> object_store::Result<Arc<dyn ObjectStore>>,
    ) -> Result<Self, VaultError> {
        let told = ErrorContext {
            place: text.to_owned(),
            container: service.container,
            hint: service.hint,
            has_credentials: variables
                .keys()
                .any(|key| service.credentials.contains(&key.as_str())),
        };
        let prefix = Key::from_url_path(url.path())
            .map_err(|error| VaultError::BadUrl { url: text.to_owned(), why: error.to_string() })?;
        let store = build(url, variables).map_err(|error| told.explain(&error))?;
        Ok(Self { store, prefix, told, directory: None })
    }

    /// Returns the prefix of all objects of a session.
    pub(crate) fn session(&self, session: &SessionId) -> Key {
        self.prefix.clone().join(session.as_str())
    }

    pub(crate) fn prefix(&self) -> &Key {
        &self.prefix
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Disk,
    S3,
    Gcs,
    Azure,
}

/// Parses the URL of a store.
pub(crate) fn parse(text: &str) -> Result<(Kind, Url), VaultError> {
    let bad = |why: &str| VaultError::BadUrl { url: text.to_owned(), why: why.to_owned() };
    let url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(VaultError::BadUrl {
            url: format!("{}://…", url.scheme()),
            why: "credentials belong into the environment".to_owned(),
        });
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("it may have no ? and no #"));
    }
    let has_host = url.host_str().is_some_and(|host| !host.is_empty());
    let kind = match (url.scheme(), has_host) {
        ("file", false) => Kind::Disk,
        ("file", true) => return Err(bad("write file:///path, with three slashes")),
        ("s3" | "gs" | "az", false) => return Err(bad("it names no bucket")),
        ("s3", true) => Kind::S3,
        ("gs", true) => Kind::Gcs,
        ("az", true) => Kind::Azure,
        _ => {
            return Err(bad(
                "use file:///path, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix",
            ));
        }
    };
    Ok((kind, url))
}

/// The terms of a service.
struct Service {
    container: &'static str,
    hint: &'static str,
    /// Variables of which any one means that there are credentials.
    credentials: &'static [&'static str],
}

const S3: Service = Service {
    container: "bucket",
    hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_REGION, or AWS_ENDPOINT_URL for another server)",
    credentials: &[
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_SKIP_SIGNATURE",
    ],
};

const GCS: Service = Service {
    container: "bucket",
    hint: "set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT to the path of a key file",
    credentials: &[
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
        "GOOGLE_SKIP_SIGNATURE",
        "SERVICE_ACCOUNT",
    ],
};

const AZURE: Service = Service {
    container: "container",
    hint: "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY (or a SAS token, or a client's id and secret)",
    credentials: &[
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_ACCESS_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_STORAGE_SAS_KEY",
        "AZURE_STORAGE_TOKEN",
        "AZURE_STORAGE_CLIENT_SECRET",
        "AZURE_CLIENT_SECRET",
        "AZURE_FEDERATED_TOKEN_FILE",
        "AZURE_STORAGE_USE_EMULATOR",
        "AZURE_SKIP_SIGNATURE",
    ],
};

/// Returns the variables that the builder of a service knows, like its `from_env` does with
/// those of the process.
fn known<K: std::str::FromStr>(
    variables: &Variables,
    prefix: &'static str,
) -> impl Iterator<Item = (K, String)> {
    variables.iter().filter_map(move |(name, value)| {
        let name = name.starts_with(prefix).then(|| name.to_ascii_lowercase())?;
        Some((name.parse().ok()?, value.clone()))
    })
}

fn s3(url: &Url, variables: &Variables) -> object_store::Result<Arc<dyn ObjectStore>> {
    // Before the variables, which may allow plain HTTP or another timeout.
    let builder = AmazonS3Builder::new().with_client_options(options()).with_retry(retries());
    let builder =
        known(variables, "AWS_").fold(builder, |b, (key, value)| b.with_config(key, value));
    Ok(Arc::new(builder.with_url(url.as_str()).build()?))
}

fn gcs(url: &Url, variables: &Variables) -> object_store::Result<Arc<dyn ObjectStore>> {
    let builder =
        GoogleCloudStorageBuilder::new().with_client_options(options()).with_retry(retries());
    let builder = match variables.get("SERVICE_ACCOUNT") {
        Some(path) => builder.with_service_account_path(path),
        None => builder,
    };
    let builder =
        known(variables, "GOOGLE_").fold(builder, |b, (key, value)| b.with_config(key, value));
    Ok(Arc::new(builder.with_url(url.as_str()).build()?))
}

fn azure(url: &Url, variables: &Variables) -> object_store::Result<Arc<dyn ObjectStore>> {
    let builder = MicrosoftAzureBuilder::new().with_client_options(options()).with_retry(retries());
    let builder = match variables.get("IDENTITY_ENDPOINT") {
        Some(endpoint) => builder.with_msi_endpoint(endpoint),
        None => builder,
    };
    let builder =
        known(variables, "AZURE_").fold(builder, |b, (key, value)| b.with_config(key, value));
    Ok(Arc::new(builder.with_url(url.as_str()).build()?))
}

fn options() -> ClientOptions {
    ClientOptions::new().with_connect_timeout(CONNECTING).with_timeout(REQUEST)
}

fn retries() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(2),
        base: 2.,
    };
    RetryConfig { backoff, max_retries: RETRIES, retry_timeout: RETRY_WINDOW }
}

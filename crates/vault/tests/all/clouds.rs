//! Services that are not here: what is said without them.

use sessile_protocol::SessionId;
use sessile_vault::{Variables, Vault, VaultError};

/// A port of this machine where nobody listens, in the place of the service
/// that a cloud's machines ask for credentials.
const NOBODY: &str = "http://127.0.0.1:9";

fn ask(url: &str, variables: &[(&str, &str)]) -> VaultError {
    let variables: Variables =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    match Vault::open(url, &variables) {
        Ok(vault) => vault.latest(&SessionId::from_random([1; 12])).unwrap_err(),
        Err(error) => error,
    }
}

#[test]
fn s3_without_credentials_says_how_to_give_them() {
    let error = ask("s3://bucket/x", &[("AWS_METADATA_ENDPOINT", NOBODY)]);
    assert_eq!(error.code(), "no_credentials", "{error}");
    assert!(error.to_string().contains("AWS_ACCESS_KEY_ID"), "{error}");
}

#[test]
fn azure_without_credentials_says_how_to_give_them() {
    let account = ("AZURE_STORAGE_ACCOUNT_NAME", "nobody");
    let error = ask("az://container/x", &[account, ("IDENTITY_ENDPOINT", NOBODY)]);
    assert_eq!(error.code(), "no_credentials", "{error}");
    let error = ask("az://container/x", &[]);
    assert_eq!(error.code(), "no_credentials", "{error}");
    assert!(error.to_string().contains("AZURE_STORAGE_ACCOUNT_KEY"), "{error}");
}

#[test]
fn gcs_with_a_key_file_that_is_not_there_says_so() {
    let error = ask("gs://bucket/x", &[("GOOGLE_SERVICE_ACCOUNT", "/no/such/key.json")]);
    assert!(error.to_string().contains("/no/such/key.json"), "{error}");
}

#[test]
fn gcs_and_azure_that_are_down_are_told() {
    let key = format!(
        "{{\"gcs_base_url\": \"{NOBODY}\", \"disable_oauth\": true, \"client_email\": \"\", \
          \"private_key\": \"\", \"private_key_id\": \"\"}}"
    );
    let google = [("GOOGLE_SERVICE_ACCOUNT_KEY", key.as_str()), ("GOOGLE_ALLOW_HTTP", "true")];
    let error = ask("gs://bucket/x", &google);
    assert_eq!(error.code(), "unreachable", "{error}");
    let azure = [
        ("AZURE_STORAGE_ACCOUNT_NAME", "nobody"),
        ("AZURE_STORAGE_ACCOUNT_KEY", "c2VjcmV0"),
        ("AZURE_STORAGE_ENDPOINT", NOBODY),
        ("AZURE_ALLOW_HTTP", "true"),
    ];
    let error = ask("az://container/x", &azure);
    assert_eq!(error.code(), "unreachable", "{error}");
}

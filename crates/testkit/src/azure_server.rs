//! Azure's blob storage on this machine: Azurite, installed by `cargo xtask clients`.

use crate::needs;
use crate::object_server::{dying_with_us, free_ports, is_up};
use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};

/// The default account of Azurite.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

const MAKE_CONTAINER: &str = include_str!("make_container.py");

/// A server with one container, `saves`, in memory. It ends when this is dropped.
#[derive(Debug)]
pub struct AzureServer {
    child: Child,
    port: u16,
}

/// Starts a server, if it is installed: see [`needs`].
///
/// # Panics
/// When it does not start.
#[must_use]
pub fn azure_server() -> Option<AzureServer> {
    let program = needs::installed("SESSILE_TEST_AZURE_SERVER")?;
    loop {
        let port = free_ports(1)[0];
        let mut command = Command::new(&program);
        command
            .args(["--blobPort", &port.to_string(), "--inMemoryPersistence", "--silent"])
            .args(["--skipApiVersionCheck", "--disableTelemetry"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = dying_with_us(&mut command)
            .spawn()
            .expect("the Azure server; `cargo xtask clients` installs it");
        if !is_up(&mut child, port) {
            // Another process has taken the port.
            continue;
        }
        let server = AzureServer { child, port };
        let made = Command::new("python3")
            .args(["-c", MAKE_CONTAINER, &port.to_string(), "saves"])
            .status()
            .expect("python3");
        assert!(made.success(), "no container");
        return Some(server);
    }
}

impl AzureServer {
    /// Returns the environment variables for its account.
    #[must_use]
    pub fn variables(&self) -> BTreeMap<String, String> {
        let endpoint = format!("http://127.0.0.1:{}/{ACCOUNT}", self.port);
        [
            ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT),
            ("AZURE_STORAGE_ACCOUNT_KEY", KEY),
            ("AZURE_STORAGE_ENDPOINT", &endpoint),
            ("AZURE_ALLOW_HTTP", "true"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }
}

impl Drop for AzureServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

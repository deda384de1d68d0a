//! TLS from a certificate and its key, with rustls on ring.

use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{self, ServerConfig, crypto};
use tokio_rustls::server::TlsStream;

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read a certificate from {}: {source}", path.display())]
    Certificate { path: PathBuf, source: pem::Error },
    #[error("{} has no certificate in it; it must be PEM", path.display())]
    NoCertificate { path: PathBuf },
    #[error("cannot read a private key from {}: {source}", path.display())]
    Key { path: PathBuf, source: pem::Error },
    #[error("the certificate and its key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// The certificate and key of a server.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads both files.
    ///
    /// # Errors
    /// When they cannot be read, or do not belong together.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let bad = |source| TlsError::Certificate { path: cert.to_owned(), source };
        let chain = CertificateDer::pem_file_iter(cert)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(bad)?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate { path: cert.to_owned() });
        }
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|source| TlsError::Key { path: key.to_owned(), source })?;
        let provider = Arc::new(crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.0.accept(stream).await
    }
}

//! Paths in requests: any bytes but NUL, percent-encoded in a query, and as text or
//! base64 in JSON.

use crate::http::wire::Encoding;
use crate::service::ServiceError;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The `path` of a query; empty, which is the workspace itself, when absent.
pub(in crate::http) struct GivenPath(pub(in crate::http) Vec<u8>);

impl<S: Sync> FromRequestParts<S> for GivenPath {
    type Rejection = ServiceError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ServiceError> {
        let query = parts.uri.query().unwrap_or_default();
        let path = query.split('&').find_map(|pair| pair.strip_prefix("path="));
        Ok(Self(path.map(decoded).unwrap_or_default()))
    }
}

/// Decodes a value of a query. Bytes that are not encoded stay as they are.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        // `from_str_radix` accepts a sign, too.
        let digits = digits.filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        rest = match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                &after[2..]
            }
            (b'+', _) => {
                bytes.push(b' ');
                after
            }
            (other, _) => {
                bytes.push(*other);
                after
            }
        };
    }
    bytes
}

/// Returns the bytes of a path in JSON.
pub(super) fn bytes(text: String, encoding: Option<Encoding>) -> Result<Vec<u8>, ServiceError> {
    match encoding {
        None | Some(Encoding::Utf8) => Ok(text.into_bytes()),
        Some(Encoding::Base64) => {
            STANDARD.decode(text).map_err(|_| ServiceError::bad_request("the path is not base64"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_come_through() {
        for (text, meant) in [
            ("a%2Fb+c", &b"a/b c"[..]),
            ("caf%E9%ff", b"caf\xe9\xff"),
            ("100%", b"100%"),
            ("%zz%4", b"%zz%4"),
            ("%+1", b"% 1"),
            ("", b""),
        ] {
            assert_eq!(decoded(text), meant, "{text}");
        }
    }
}
